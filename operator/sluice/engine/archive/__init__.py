"""Runs of an archive: planning, putting objects, checking them, retention."""
