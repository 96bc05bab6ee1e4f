"""Rounds of work that tasks do side by side, at the limits that hold."""
