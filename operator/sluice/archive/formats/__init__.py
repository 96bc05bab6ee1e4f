"""Formats in which archives hold events."""
