"""Slices of work that tasks do side by side, within the limits."""
