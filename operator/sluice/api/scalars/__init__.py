"""Fields of one value, which is written as a text or a number."""
