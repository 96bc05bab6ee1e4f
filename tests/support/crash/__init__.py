"""Points at which a process dies, and what holds a call up there."""
