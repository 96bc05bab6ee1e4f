"""Resources and their surroundings, for pure decisions."""
