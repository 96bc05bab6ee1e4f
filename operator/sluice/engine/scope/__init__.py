"""Copies of many streams by one plan."""
