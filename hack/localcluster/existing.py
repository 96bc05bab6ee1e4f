"""A cluster that somebody else runs."""

import os
from collections.abc import Sequence
from pathlib import Path

from localcluster.cluster import Cluster
from localcluster.commands import Say
from localcluster.errors import LocalClusterError
from localcluster.image import Image, ImageSource


class ExistingCluster(Cluster):
    """A cluster that is used and never stopped.

    Args:
        kubeconfig: Access to it.
        images: Where its images come from.
        pods_reachable: Whether programs on this machine reach its pods.
    """

    def __init__(self, kubeconfig: Path, images: ImageSource, *, pods_reachable: bool) -> None:
        super().__init__(images)
        self.kubeconfig = kubeconfig
        self.pods_reachable = pods_reachable
        self.what = f"the cluster of {kubeconfig}"

    def up(self, say: Say = print, images: Sequence[Image] = ()) -> list[str]:
        """Sees whether it answers."""
        if not self.kubeconfig.is_file():
            raise LocalClusterError(f"SLUICE_KUBECONFIG names {self.kubeconfig}, which is no file")
        self.kubectl("get", "--raw=/readyz")
        say(f"using {self.what}, which is left running")
        return [self.provide(image, say=say) for image in images]

    def down(self, say: Say = print, *, wipe: bool = False) -> None:
        """Leaves it alone."""
        del wipe
        say(f"{self.what} is not ours: left running")

    def status(self) -> list[str]:
        """Asks for its nodes."""
        return [f"{self.what} is up", *self.kubectl("get", "nodes").splitlines()]


class NamedImages:
    """Images that were brought to the cluster by other means, named in the environment.

    SLUICE_IMAGE names Sluice's own, SLUICE_IMAGE_PRAVEGA that of localhost/pravega, and so on.
    """

    def provide(self, image: Image, say: Say) -> str:
        """Looks up the reference."""
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
