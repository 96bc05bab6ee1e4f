"""Records beside a target, of which the first one that is written counts."""
