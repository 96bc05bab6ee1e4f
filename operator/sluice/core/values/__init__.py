"""Values that all of Sluice shares."""
