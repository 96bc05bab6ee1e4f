"""What a stream store is, and the stores there are."""
