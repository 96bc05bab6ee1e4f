"""Following a source: append what comes in it to the target, exactly once, and compare it."""
