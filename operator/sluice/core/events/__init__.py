"""Events in rows of bytes: their frames, their number, digests of chunks."""
