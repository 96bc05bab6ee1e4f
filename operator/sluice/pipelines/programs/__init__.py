"""From a resource to a report, for the command line and for drivers."""
