"""The cost of thousands of resources for an operator, at rest and in bursts of events."""
