"""EphemeralStreams: observing them and their owners, and carrying out decisions."""
