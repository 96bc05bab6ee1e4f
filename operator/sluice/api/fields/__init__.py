"""Fields that several kinds share, and their rules."""
