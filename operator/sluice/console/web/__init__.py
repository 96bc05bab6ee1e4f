"""Serve a page of progress on this machine."""
