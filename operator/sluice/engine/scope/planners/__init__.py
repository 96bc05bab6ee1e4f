"""Plan what is done with each stream of a scope: copied, archived, or restored."""
