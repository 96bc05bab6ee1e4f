"""Read reader groups from their internal streams, and make new ones."""
