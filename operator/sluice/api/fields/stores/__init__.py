"""The parts of a StreamStore's spec that say where it is: a module for each kind of store."""
