"""A real Kubernetes on this machine, for the demo and the tests, with a Pravega in it.

`choose` returns the cluster: the existing one that SLUICE_KUBECONFIG names, or a kind cluster if
docker and kind are available, or our own. Our own has one node, with a Kubernetes compiled from Go
modules and a container runtime from Debian. So it needs no image registry and no release download.
`ClusterStore` is a Pravega in the cluster, with the official Java client as a witness.

Like `localstore`, the package uses only the standard library.
"""

from localcluster.choose import choose
from localcluster.cluster import Cluster
from localcluster.errors import LocalClusterError
from localcluster.images.image import Image
from localcluster.images.store_image import store_image
from localcluster.store import ClusterStore

__all__ = ["Cluster", "ClusterStore", "Image", "LocalClusterError", "choose", "store_image"]
