"""Resources and the world around them, for pure decisions."""
