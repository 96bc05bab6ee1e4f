"""Fields that several kinds have, and their rules."""
