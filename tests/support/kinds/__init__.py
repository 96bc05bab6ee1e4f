"""Kinds of resources that only tests have."""
