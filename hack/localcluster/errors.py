"""What can go wrong with the local cluster, for a person to read."""

from localstore.errors import LocalStoreError


class LocalClusterError(LocalStoreError):
    """A Kubernetes could not be used, started or given an image; the message says what to do."""
