"""Fields that several kinds share."""
