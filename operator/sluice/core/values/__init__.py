"""Values that all of Sluice speaks in."""
