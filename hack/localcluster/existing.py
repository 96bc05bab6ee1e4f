"""A cluster that is not ours."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from localcluster.cluster import Cluster
from localcluster.commands import Say
from localcluster.errors import LocalClusterError
from localcluster.images.image import Image, ImageSource


class ExistingCluster(Cluster):
    """A cluster that is used and never stopped.

    Args:
        kubeconfig: the cluster's kubeconfig.
        images: the source of its images.
        pods_reachable: whether programs on this machine reach its pods.
    """

    def __init__(self, kubeconfig: Path, images: ImageSource, *, pods_reachable: bool) -> None:
        super().__init__(images)
        self.kubeconfig = kubeconfig
        self.pods_reachable = pods_reachable
        self.what = f"the cluster of {kubeconfig}"

    def up(self, say: Say = print, images: Sequence[Callable[[], Image]] = ()) -> list[str]:
        """Check that the cluster answers, and provide the images."""
        if not self.kubeconfig.is_file():
            raise LocalClusterError(f"SLUICE_KUBECONFIG names {self.kubeconfig}, which is no file")
        self.kubectl("get", "--raw=/readyz")
        say(f"using {self.what}, which is left running")
        return [self.provide(describe(), say=say) for describe in images]

    def down(self, say: Say = print, *, wipe: bool = False) -> None:
        """Leave the cluster running."""
        del wipe
        say(f"{self.what} is not ours: left running")

    def status(self) -> list[str]:
        """Return the cluster's nodes."""
        return [f"{self.what} is up", *self.kubectl("get", "nodes").splitlines()]


class NamedImages:
    """Images that the cluster already has, named in the environment.

    SLUICE_IMAGE names Sluice's image, SLUICE_IMAGE_PRAVEGA that of localhost/pravega, and so on.
    """

    def provide(self, image: Image, say: Say) -> str:
        """Return the reference from the environment."""
        del say
        name = image.repository.rpartition("/")[2]
        suffix = "" if name == "sluice" else f"_{name.upper().replace('-', '_')}"
        variable = f"SLUICE_IMAGE{suffix}"
        reference = os.environ.get(variable)
        if not reference:
            raise LocalClusterError(
                f"images cannot be brought to this cluster from here: build {image.recipe}, push "
                f"it where the cluster finds it, and name it in {variable}"
            )
        return reference
