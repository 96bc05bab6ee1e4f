"""The driver's process in a pod."""
