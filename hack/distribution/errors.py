"""The error of this package."""


class DistributionError(Exception):
    """A release that cannot be made. The message says why, and what to do."""
