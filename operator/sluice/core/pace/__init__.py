"""How much work is done at once, how fast, and when a failed call is tried again."""
