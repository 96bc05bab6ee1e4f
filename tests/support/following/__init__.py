"""Streams that are followed, in the model store and on a real one."""
