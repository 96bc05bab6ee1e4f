"""The one error of this package."""


class LocalStoreError(Exception):
    """The local store cannot be provided; the message says what to do or where to look."""
