"""A kind cluster, in docker."""

import os
import shutil
from collections.abc import Callable, Sequence

from localcluster.cluster import Cluster
from localcluster.commands import Say, run, succeeds, watch
from localcluster.errors import LocalClusterError
from localcluster.images.image import Image
from localcluster.progress import step
from localstore.cache import locked, state_root

NAME = "sluice"

_SECONDS = 600.0
_NODE = f"{NAME}-control-plane"
_BUILDX = {"DOCKER_BUILDKIT": "1", "BUILDX_NO_DEFAULT_ATTESTATIONS": "1"}
"""With attestations, which have the time, the same content would be another image each time."""


def usable() -> bool:
    """Tell whether docker answers and kind is installed."""
    return shutil.which("kind") is not None and succeeds(["docker", "info"])


class KindCluster(Cluster):
    """A cluster with one node, which is a docker container."""

    def __init__(self) -> None:
        super().__init__(KindImages(NAME))
        self.kubeconfig = state_root() / "kind" / "kubeconfig"
        self.pods_reachable = os.geteuid() == 0
        self.services_reachable = False
        self.what = f"kind's cluster {NAME}"

    def up(self, say: Say = print, images: Sequence[Callable[[], Image]] = ()) -> list[str]:
        """Create the cluster, and as root a route from this machine to its pods."""
        self.kubeconfig.parent.mkdir(parents=True, exist_ok=True)
        with locked(self.kubeconfig.with_suffix(".lock")):
            if not self._exists():
                say(f"{self.what}: kind pulls a node's image of 1 GB the first time")
                with step(say, f"creating {self.what}"):
                    run(
                        ["kind", "create", "cluster", f"--name={NAME}", "--wait=180s"],
                        environment={"KUBECONFIG": str(self.kubeconfig)},
                        seconds=_SECONDS,
                    )
            elif not self.kubeconfig.exists():
                self._find()
            if self.pods_reachable:
                run(["ip", "route", "replace", self._pod_range(), "via", self._node_address()])
        return [self.provide(describe(), say=say) for describe in images]

    def down(self, say: Say = print, *, wipe: bool = False) -> None:
        """Delete the cluster, because kind cannot stop one. So `wipe` adds nothing."""
        del wipe
        if not self._exists():
            return
        if self.pods_reachable and self.kubeconfig.exists():
            succeeds(["ip", "route", "delete", self._pod_range()])
        with step(say, f"deleting {self.what}"):
            run(["kind", "delete", "cluster", f"--name={NAME}"], seconds=_SECONDS)
        self.kubeconfig.unlink(missing_ok=True)

    def status(self) -> list[str]:
        """Return the cluster's node."""
        if not self._exists():
            raise LocalClusterError(f"{self.what} is not up")
        return [f"{self.what} is up", *self.kubectl("get", "nodes").splitlines()]

    def _find(self) -> None:
        """Write the kubeconfig of a cluster that another user has made, or that is half made."""
        try:
            run(
                ["kind", "export", "kubeconfig", f"--name={NAME}"],
                environment={"KUBECONFIG": str(self.kubeconfig)},
            )
        except LocalClusterError as error:
            raise LocalClusterError(
                f"{self.what} exists, and does not serve: remove it by make cluster-down ({error})"
            ) from error

    def _exists(self) -> bool:
        return NAME in run(["kind", "get", "clusters"]).split()

    def _pod_range(self) -> str:
        return self.kubectl("get", "node", _NODE, "--output=jsonpath={.spec.podCIDR}").strip()

    def _node_address(self) -> str:
        addresses = "{{range .NetworkSettings.Networks}}{{.IPAddress}} {{end}}"
        return run(["docker", "inspect", f"--format={addresses}", _NODE]).split()[0]


class KindImages:
    """Images built by docker and loaded into a kind cluster.

    Args:
        cluster: the cluster's name.
    """

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster

    def provide(self, image: Image, say: Say) -> str:
        """Build an image and load it. Both steps skip unchanged content."""
        name = image.name if image.tagged else f"{image.name}:building"
        if not (image.settled and succeeds(["docker", "image", "inspect", name])):
            arguments = [f"--build-arg={key}={value}" for key, value in image.build_args.items()]
            target = [f"--target={image.stage}"] if image.stage else []
            command = ["docker", "build", f"--tag={name}", f"--file={image.recipe}", *target]
            with step(say, f"building {image.name}"):
                watch(
                    [*command, *arguments, image.context],
                    sign=lambda _: "still building",
                    say=say,
                    environment=_BUILDX,
                )
        if not image.tagged:
            identity = run(["docker", "image", "inspect", "--format={{.Id}}", name]).strip()
            name = f"{image.name}:{identity.removeprefix('sha256:')[:12]}"
            run(["docker", "tag", identity, name])
        load = ["kind", "load", "docker-image", name, f"--name={self._cluster}"]
        with step(say, f"loading {name}"):
            run(load, seconds=_SECONDS)
        return name
