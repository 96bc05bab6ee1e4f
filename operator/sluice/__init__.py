"""Sluice: copy, clean up and archive streams declaratively, exactly once."""

__version__ = "0.1.0"
