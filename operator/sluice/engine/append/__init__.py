"""Appending to a stream that others write to."""
