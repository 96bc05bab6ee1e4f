"""Observe EphemeralStreams and their owners, and carry out decisions about them."""
