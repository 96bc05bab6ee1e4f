"""The API server: its client, the kinds and objects, and how Sluice writes them."""
