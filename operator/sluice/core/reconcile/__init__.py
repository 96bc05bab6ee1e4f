"""The operator's decisions: pure functions from a resource and its surroundings to actions."""
