"""What the operator, drivers and the command line have the engine do, kind by kind."""
