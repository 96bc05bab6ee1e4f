"""Run copies and archives from the resource to the report, for the command line and drivers."""
