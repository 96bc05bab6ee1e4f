"""Images: their descriptions, builds, keys and imports."""
