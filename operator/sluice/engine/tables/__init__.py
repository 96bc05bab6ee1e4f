"""Streams as tables: read live streams and archives by positions, as batches of Arrow."""
