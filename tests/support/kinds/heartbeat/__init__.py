"""A kind of its own folder: a Heartbeat counts how often the operator has looked after it."""
