"""Requests of resources, their plans, and the stores' answers."""
