"""A run of an archive: planning, putting, checking, retention."""
