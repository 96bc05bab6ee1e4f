"""Copies of many streams: selection, names of targets, and results."""
