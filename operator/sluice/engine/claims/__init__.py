"""Streams that live as long as a resource: who owns them, making and deleting them."""
