"""The process of a driver pod."""
