"""API servers in memory, and judges of objects."""
