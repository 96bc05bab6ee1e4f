"""Real stores, and servers that imitate a store and lie."""
