"""Thousands of resources: what they cost an operator at rest, and when much happens at once."""
