"""Segments: appending, reading, attributes."""
