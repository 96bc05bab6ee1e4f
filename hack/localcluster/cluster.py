"""The interface of all clusters that the tests and the demo use."""

import re
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from localcluster import tools
from localcluster.commands import Say, run
from localcluster.errors import LocalClusterError
from localcluster.images.image import Image, ImageSource

FOR_TESTS: Final = "sluice.dev/for-tests"
"""The label of namespaces that the demo and the tests may change and delete."""

_FORWARDED = re.compile(r"^Forwarding from 127\.0\.0\.1:(\d+) ", re.MULTILINE)
_FORWARD_SECONDS = 30.0
_POLL_SECONDS = 0.05


class Cluster(ABC):
    """A cluster, up or not.

    Attributes:
        what: description for people.
        kubeconfig: the administrator's kubeconfig, once the cluster is up.
        pods_reachable: whether programs on this machine reach pods by their addresses.
        services_reachable: whether they reach Services by theirs.
    """

    what: str
    kubeconfig: Path
    pods_reachable: bool
    services_reachable: bool

    def __init__(self, images: ImageSource) -> None:
        self._images = images

    @abstractmethod
    def up(self, say: Say = print, images: Sequence[Callable[[], Image]] = ()) -> list[str]:
        """Start the cluster unless it runs, and wait until pods can run.

        Args:
            say: callback for needs and progress messages.
            images: functions that describe images to provide as well. They are called, and the
                images are built, while the cluster is compiled.

        Returns:
            The references of these images, for pods.

        Raises:
            LocalStoreError: the cluster does not start.
        """

    @abstractmethod
    def down(self, say: Say = print, *, wipe: bool = False) -> None:
        """Stop the cluster if it is ours.

        Args:
            say: callback for progress messages.
            wipe: whether to delete the state too: objects, images, certificates.
        """

    @abstractmethod
    def status(self) -> list[str]:
        """Return a description of the cluster in a few lines.

        Raises:
            LocalClusterError: the cluster does not serve, or may not be used.
        """

    def make_volume(self, namespace: str, claim: str) -> None:
        """Ensure that a PersistentVolumeClaim gets an empty volume once it is made.

        Args:
            namespace: the claim's namespace.
            claim: the claim's name. There must be no claim of this name.
        """
        del namespace, claim  # the cluster's own StorageClass makes it

    def build_image(
        self,
        name: str,
        context: Path,
        dockerfile: Path | None = None,
        build_args: Mapping[str, str] | None = None,
        *,
        say: Say = print,
    ) -> str:
        """Build an image and bring it to the cluster, unless it is unchanged.

        Args:
            name: the image's name; without a tag it gets one from its content.
            context: folder that the build sees.
            dockerfile: the Dockerfile; the context's own if left out.
            build_args: values for the ARGs of the Dockerfile.
            say: callback for progress messages.

        Returns:
            The reference for pods, whose `imagePullPolicy` must be IfNotPresent or Never.
        """
        return self.provide(Image(name, context, dockerfile, build_args or {}), say=say)

    def provide(self, image: Image, *, say: Say = print) -> str:
        """Build a described image and bring it to the cluster, unless it is unchanged."""
        return self._images.provide(image, say)

    def kubectl(self, *arguments: str, stdin: str | None = None, timeout: float = 300.0) -> str:
        """Run kubectl.

        Args:
            arguments: kubectl's arguments.
            stdin: text for its standard input.
            timeout: deadline in seconds.

        Returns:
            The output.

        Raises:
            LocalClusterError: kubectl failed; the message ends with its own.
        """
        return run(self.kubectl_command(*arguments), stdin=stdin, seconds=timeout)

    def kubectl_command(self, *arguments: str) -> list[str]:
        """Return the command line of a kubectl that the caller runs."""
        return [str(tools.kubectl()), f"--kubeconfig={self.kubeconfig}", *arguments]

    def helm(self, *arguments: str, timeout: float = 300.0) -> str:
        """Run Helm.

        Args:
            arguments: Helm's arguments.
            timeout: deadline in seconds.

        Returns:
            The output.

        Raises:
            LocalClusterError: Helm failed; the message ends with its own.
        """
        access = f"--kubeconfig={self.kubeconfig}"
        return run([tools.helm(), access, *arguments], seconds=timeout)

    @contextmanager
    def forward(self, namespace: str, target: str, port: int) -> Iterator[int]:
        """Forward a port of this machine to a port in the cluster.

        Args:
            namespace: the target's namespace.
            target: a pod ("name"), or "deployment/name" or "service/name".
            port: the target's port.

        Yields:
            The port on 127.0.0.1.

        Raises:
            LocalClusterError: the target is missing or does not run.
        """
        words = ["port-forward", f"--namespace={namespace}", target, f":{port}"]
        with (
            tempfile.NamedTemporaryFile("w+") as output,
            subprocess.Popen(
                self.kubectl_command(*words),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            ) as child,
        ):
            try:
                yield _forwarded_port(child, Path(output.name))
            finally:
                child.kill()


def _forwarded_port(child: subprocess.Popen[bytes], output: Path) -> int:
    deadline = time.monotonic() + _FORWARD_SECONDS
    while True:
        ended = child.poll() is not None or time.monotonic() > deadline
        text = output.read_text()
        if match := _FORWARDED.search(text):
            return int(match[1])
        if ended:
            raise LocalClusterError(f"kubectl port-forward failed:\n{text}")
        time.sleep(_POLL_SECONDS)
