"""Runs of archives: planned, put, read back and recorded."""
