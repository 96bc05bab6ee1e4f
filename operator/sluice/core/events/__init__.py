"""Events in a segment's bytes: their frames, their number, digests of chunks."""
