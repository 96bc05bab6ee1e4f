"""A Kubernetes that tests and the demo use, whatever it is."""

import re
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from localcluster import tools
from localcluster.commands import Say, run
from localcluster.errors import LocalClusterError
from localcluster.image import Image, ImageSource

_FORWARDED = re.compile(r"^Forwarding from 127\.0\.0\.1:(\d+) ", re.MULTILINE)
_FORWARD_SECONDS = 30.0
_POLL_SECONDS = 0.05


class Cluster(ABC):
    """A cluster, up or not.

    Attributes:
        what: What it is, for a person.
        kubeconfig: The administrator's access, once the cluster is up.
        pods_reachable: Whether programs on this machine reach pods by their addresses.
    """

    what: str
    kubeconfig: Path
    pods_reachable: bool

    def __init__(self, images: ImageSource) -> None:
        self._images = images

    @abstractmethod
    def up(self, say: Say = print, images: Sequence[Image] = ()) -> list[str]:
        """Starts it unless it runs, and returns when pods can run.

        Args:
            say: Told what is needed, and what happens.
            images: Images to provide as well; they are built while the cluster is.

        Returns:
            The references of those images, for pods.

        Raises:
            LocalStoreError: It does not come up.
        """

    @abstractmethod
    def down(self, say: Say = print, *, wipe: bool = False) -> None:
        """Stops it if it is ours.

        Args:
            say: Told what happens.
            wipe: Whether its state goes as well: objects, images, certificates.
        """

    @abstractmethod
    def status(self) -> list[str]:
        """Describes it in a few lines.

        Raises:
            LocalClusterError: It does not serve.
        """

    def build_image(
        self,
        name: str,
        context: Path,
        dockerfile: Path | None = None,
        build_args: Mapping[str, str] | None = None,
        *,
        say: Say = print,
    ) -> str:
        """Builds an image and brings it to the cluster, as far as something changed.

        Args:
            name: Its name; without a tag it gets one from its content.
            context: The folder that the build sees.
            dockerfile: How it is built; the context's own when left out.
            build_args: Values for the ARGs of the Dockerfile.
            say: Told what takes long.

        Returns:
            The reference for pods, whose `imagePullPolicy` has to be IfNotPresent or Never.
        """
        return self.provide(Image(name, context, dockerfile, build_args or {}), say=say)

    def provide(self, image: Image, *, say: Say = print) -> str:
        """Does the same for an image that is described already."""
        return self._images.provide(image, say)

    def kubectl(self, *arguments: str, stdin: str | None = None, timeout: float = 60.0) -> str:
        """Runs kubectl.

        Args:
            arguments: Its arguments.
            stdin: What it reads.
            timeout: Deadline in seconds.

        Returns:
            What it printed.

        Raises:
            LocalClusterError: It failed; the message ends with its own.
        """
        return run(self.kubectl_command(*arguments), stdin=stdin, seconds=timeout)

    def kubectl_command(self, *arguments: str) -> list[str]:
        """Writes the command line of a kubectl that somebody else runs."""
        return [str(tools.kubectl()), f"--kubeconfig={self.kubeconfig}", *arguments]

    def helm(self, *arguments: str, timeout: float = 300.0) -> str:
        """Runs Helm.

        Args:
            arguments: Its arguments.
            timeout: Deadline in seconds.

        Returns:
            What it printed.

        Raises:
            LocalClusterError: It failed; the message ends with its own.
        """
        access = f"--kubeconfig={self.kubeconfig}"
        return run([tools.helm(), access, *arguments], seconds=timeout)

    @contextmanager
    def forward(self, namespace: str, target: str, port: int) -> Iterator[int]:
        """Opens a way from this machine to a port in the cluster.

        Args:
            namespace: Where the target is.
            target: A pod ("name"), or "deployment/name" or "service/name".
            port: The target's port.

        Yields:
            The port on 127.0.0.1.

        Raises:
            LocalClusterError: The target is not there or does not run.
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
