"""The kind Heartbeat in a folder of its own: it counts the operator's looks at it."""
