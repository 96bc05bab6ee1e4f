"""Streams of real stores, and what copies leave there."""
