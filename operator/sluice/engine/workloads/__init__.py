"""The work that each kind of resource has the engine do, for the operator and for drivers."""
