"""Slices of a segment: copy its bytes, verify them, and count their events."""
