"""The status of each kind."""
