"""A cluster that SLUICE_KUBECONFIG names."""

import os
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from localcluster.cluster import FOR_TESTS, Cluster
from localcluster.commands import Say
from localcluster.errors import LocalClusterError
from localcluster.images.image import Image, ImageSource

TAKEN: Final = ("demo", "pravega", "sluice-system")
"""The namespaces in which the demo and the tests change and delete what they find."""


class ExistingCluster(Cluster):
    """A cluster that is used and never stopped.

    Args:
        kubeconfig: the cluster's kubeconfig.
        images: the source of its images.
        ours: whether it is our own cluster, whose pods and Services this machine reaches.
    """

    def __init__(self, kubeconfig: Path, images: ImageSource, *, ours: bool) -> None:
        super().__init__(images)
        self.kubeconfig = kubeconfig
        self.pods_reachable = self.services_reachable = self._ours = ours
        self.what = f"the cluster of {kubeconfig}"

    def up(self, say: Say = print, images: Sequence[Callable[[], Image]] = ()) -> list[str]:
        """Check that the cluster answers, and provide the images."""
        if not self.kubeconfig.is_file():
            raise LocalClusterError(f"SLUICE_KUBECONFIG names {self.kubeconfig}, which is no file")
        self.kubectl("get", "--raw=/readyz")
        self._check_free()
        say(f"using {self.what}, which is left running")
        return [self.provide(describe(), say=say) for describe in images]

    def _check_free(self) -> None:
        """Check that nothing is changed or deleted that the demo or the tests did not make.

        Raises:
            LocalClusterError: there are namespaces of others. The message says how to allow it.
        """
        if self._ours:
            return
        name = "--output=jsonpath={.items[*].metadata.name}"
        unmarked = self.kubectl("get", "namespaces", f"--selector=!{FOR_TESTS}", name).split()
        if taken := [one for one in TAKEN if one in unmarked]:
            raise LocalClusterError(
                f"{self.what} has namespaces in which the demo and the tests would change and "
                f"delete what they find: {', '.join(taken)}. Name a cluster for tests, or allow "
                f"it: kubectl label namespace {' '.join(taken)} {FOR_TESTS}=yes"
            )

    def down(self, say: Say = print, *, wipe: bool = False) -> None:
        """Leave the cluster running."""
        del wipe
        say(f"{self.what} is not ours: left running")

    def status(self) -> list[str]:
        """Return the cluster's nodes. Tests ask for them before they use the cluster."""
        self._check_free()
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
            words = ["docker", "build", "--tag=NAME", f"--file={image.recipe}"]
            words += [f"--target={image.stage}"] if image.stage else []
            words += [f"--build-arg={key}={value}" for key, value in image.build_args.items()]
            raise LocalClusterError(
                "images cannot be brought to this cluster from here. Build one, push it to where "
                f"the cluster finds it ({shlex.join([*words, str(image.context)])}), and name it "
                f"in {variable}"
            )
        return reference
