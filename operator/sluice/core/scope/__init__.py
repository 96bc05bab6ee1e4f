"""Copies of many streams: which, under which names, and what came of each."""
