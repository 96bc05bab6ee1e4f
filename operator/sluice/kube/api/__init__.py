"""The API server: its client, kinds, objects, and how they are written."""
