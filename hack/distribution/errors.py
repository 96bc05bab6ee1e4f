"""What goes wrong while a release is made."""


class DistributionError(Exception):
    """A release cannot be made. The message says why, and what to do."""
