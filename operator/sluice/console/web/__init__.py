"""Serve a page of progress on this machine, for people who would rather look than read."""
