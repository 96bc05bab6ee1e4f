"""Rules for comparing two streams."""
