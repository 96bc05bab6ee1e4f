"""A copy of a stream: planning, carrying out, resuming, aborting, asking what came of it."""
