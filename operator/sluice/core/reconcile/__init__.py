"""What the operator decides: pure functions from a resource and what was seen to what to do."""
