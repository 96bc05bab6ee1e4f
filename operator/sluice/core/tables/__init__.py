"""Streams as tables: positions in a stream, and events as columns. Needs the extra `tables`."""
