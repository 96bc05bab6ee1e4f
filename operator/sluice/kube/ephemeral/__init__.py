"""EphemeralStreams: looking at them and their owners, and carrying out what was decided."""
