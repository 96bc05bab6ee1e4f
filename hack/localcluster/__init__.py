"""A real Kubernetes on this machine, for the demo and the tests, with a Pravega in it.

`choose` gives the cluster: one that is there already (SLUICE_KUBECONFIG), one of kind's where
docker and kind are, else our own: one node whose Kubernetes is compiled from Go modules, with a
container runtime from Debian, so that neither a registry nor a release has to be downloaded.
`ClusterStore` is a Pravega in it, with the official Java client beside it as a witness.

As in `localstore`, only the standard library is used.
"""

from localcluster.choose import choose
from localcluster.cluster import Cluster
from localcluster.errors import LocalClusterError
from localcluster.image import Image
from localcluster.store import ClusterStore
from localcluster.store_image import store_image

__all__ = ["Cluster", "ClusterStore", "Image", "LocalClusterError", "choose", "store_image"]
