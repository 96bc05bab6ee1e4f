"""Real stores, and servers that lie as one."""
