"""Append to an existing stream that has other writers."""
