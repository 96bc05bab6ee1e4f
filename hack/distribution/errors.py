"""The error of this package."""


class DistributionError(Exception):
    """A release cannot be made. The message says why, and what to do."""
