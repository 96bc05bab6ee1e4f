"""The error of this package."""

from localstore.errors import LocalStoreError


class LocalClusterError(LocalStoreError):
    """A Kubernetes that cannot be used, started or given an image. The message says what to do."""
