"""Copies: looking at them, and carrying out what was decided."""
