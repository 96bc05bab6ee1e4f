"""API servers in memory and what judges objects."""
