"""The error of this package."""


class LocalStoreError(Exception):
    """A local store that cannot be provided. The message says what to do or where to look."""
