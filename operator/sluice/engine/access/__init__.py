"""Stores as plans name them: connections, runs of archives, questions to many at a time."""
