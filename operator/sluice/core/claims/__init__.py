"""Whose a stream is that lives as long as a resource."""
