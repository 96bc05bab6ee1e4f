"""Streams that live as long as a resource: who owns them, and how they are made and deleted."""
