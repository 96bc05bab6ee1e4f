"""Decisions about EphemeralStreams."""
