"""Streams of real stores, and the remains of copies there."""
