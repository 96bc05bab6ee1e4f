"""Kinds of resources that exist only in tests."""
