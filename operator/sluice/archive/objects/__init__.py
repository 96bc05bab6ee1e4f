"""Stores of objects: a bucket, a directory."""
