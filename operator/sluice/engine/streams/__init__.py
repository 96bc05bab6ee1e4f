"""Look into streams, and write to them, by hand."""
