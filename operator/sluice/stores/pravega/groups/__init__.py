"""Reader groups, read from their internal streams."""
