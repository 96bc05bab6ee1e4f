"""Ownership of streams that live as long as a resource."""
