"""Points at which a process dies, and proxies that hold up calls there."""
