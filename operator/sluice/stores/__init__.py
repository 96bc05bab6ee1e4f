"""The interface of a stream store, and its implementations."""
