"""Serve results of queries and the state of resources to browsers and programs."""
