"""A Pravega in the cluster, with the official Java client in its pod."""

import base64
import json
import ssl
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from localcluster import store_manifests as manifests
from localcluster.cluster import Cluster
from localcluster.commands import Say
from localcluster.errors import LocalClusterError
from localcluster.images.store_image import image_command, store_image
from localcluster.progress import step
from localstore.accounts import ADMIN, READER, User
from localstore.foreign import ForeignClient
from localstore.foreign_jvm import Launch
from localstore.ports import HOST
from localstore.probe import controller_serves, segment_store_serves
from localstore.security import server_certificates

_READY_SECONDS = 180
_POLL_SECONDS = 0.2

# All users can read a command line, so the client gets its login by its standard input.
_LOGIN = (
    "IFS= read -r FOREIGN_USER; IFS= read -r FOREIGN_PASSWORD; "
    'export FOREIGN_USER FOREIGN_PASSWORD; exec "$0" "$@"'
)


class ClusterStore:
    """A Pravega standalone as a Deployment with a Service. It loses all data when it restarts.

    Args:
        cluster: the cluster, which must be up.
        auth: whether clients have to log in, as `ADMIN` or `READER` of `localstore.accounts`. Such
            a store exists beside the store without logins.
        heap: maximum heap; see `localstore.Standalone`.
        certificates: folder for the certificates of a store that speaks TLS; None for no TLS. It
            needs logins as well, and exists beside the other stores.

    Attributes:
        users: the store's accounts; empty if no login is required.
        bundle: the certificate of its authority, in PEM, if it speaks TLS. It exists once the store
            is up.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        auth: bool = False,
        heap: str = "3g",
        certificates: Path | None = None,
    ) -> None:
        self._cluster = cluster
        self._heap = heap
        self._folder = certificates
        self.users: tuple[User, ...] = (ADMIN, READER) if auth else ()
        self.name = "pravega-auth" if auth else "pravega"
        self.bundle: Path | None = None
        if certificates is not None:
            self.name += "-tls"
            self.bundle = certificates / "ca.crt"

    @property
    def _scheme(self) -> str:
        return "tcp" if self._folder is None else "tls"

    @property
    def uri(self) -> str:
        """The controller's address for pods."""
        return f"{self._scheme}://{manifests.host(self.name)}:{manifests.CONTROLLER_PORT}"

    @property
    def host_uri(self) -> str:
        """The controller's address for programs on this machine, until the store restarts.

        Raises:
            LocalClusterError: this machine does not reach the cluster's pods.
        """
        return f"tcp://{self.controller[0]}:{self.controller[1]}"

    @property
    def controller(self) -> tuple[str, int]:
        """The controller's host and port for programs on this machine, as for `host_uri`."""
        return self._address(), manifests.CONTROLLER_PORT

    @property
    def segment_store(self) -> tuple[str, int]:
        """The segment store's host and port for programs on this machine, as for `host_uri`."""
        return self._address(), manifests.SEGMENTSTORE_PORT

    def up(self, say: Say = print) -> str:
        """Start the store unless it runs, and wait until it serves.

        Args:
            say: callback for progress messages.

        Returns:
            The controller's address for pods.

        Raises:
            LocalStoreError: the store does not start.
        """
        image = self._cluster.provide(store_image(), say=say)
        self._apply(manifests.namespace())
        tls = None
        if self._folder is not None:
            tls = server_certificates(self._folder, manifests.host(self.name))
        known = self._kubectl("get", "secret", self.name, "--ignore-not-found")
        if tls is not None or (self.users and not known):  # a new salt would change it
            self._apply(manifests.files(self.name, self.users, tls))
        server = manifests.deployment(
            self.name, image=image, heap=self._heap, users=self.users, tls=tls is not None
        )
        self._apply(server, manifests.service(self.name, tls=tls is not None))
        with step(say, f"waiting for {self.name}"):
            self._await()
        return self.uri

    def restart(self) -> None:
        """Restart the store, empty, and wait until it serves."""
        self._kubectl("rollout", "restart", f"deployment/{self.name}")
        self._await()

    def down(self) -> None:
        """Delete the store with all its data."""
        kinds = "deployment,service,secret"
        here = self._cluster.kubectl("get", "namespace", manifests.NAMESPACE, "--ignore-not-found")
        if here:
            selector = f"--selector=app.kubernetes.io/name={self.name}"
            self._kubectl("delete", kinds, selector, "--cascade=foreground", timeout=_READY_SECONDS)

    def foreign(self, user: User | None = None, *, heap: str = "1g") -> ForeignClient:
        """Return the official Java client, which runs in the store's pod.

        Args:
            user: account to log in with; the first of the store's users if left out.
            heap: maximum heap of the client's JVM.

        Returns:
            The client, not started yet. Its processes in the pod end with it.
        """
        user = user or next(iter(self.users), None)
        return ForeignClient(self.uri, launch=lambda: self._launch(user, heap))

    def logs(self, lines: int = 200) -> str:
        """Return the end of the store's log."""
        return self._kubectl("logs", f"deployment/{self.name}", f"--tail={lines}")

    def _launch(self, user: User | None, heap: str) -> Launch:
        # localhost, because the pod's address changes with a restart.
        controller = f"{self._scheme}://localhost:{manifests.CONTROLLER_PORT}"
        java = image_command("ForeignClient", heap=heap, arguments=(controller, "serve"))
        words = [f"deployment/{self.name}", f"--container={manifests.CONTAINER}", "--"]
        command = self._command("exec", "--stdin", *words)
        if self._folder is not None:
            java = ["env", f"FOREIGN_TRUST={manifests.TRUST}", *java]
        if user is None:
            return Launch([*command, *java])
        greeting = f"{user.name}\n{user.password}\n".encode()
        return Launch([*command, "sh", "-c", _LOGIN, *java], greeting=greeting)

    def _await(self) -> None:
        """Wait until Kubernetes reports the server ready, and then until clients can use it."""
        deadline = time.monotonic() + _READY_SECONDS
        try:
            self._kubectl(
                *("rollout", "status", f"deployment/{self.name}"),
                f"--timeout={_READY_SECONDS}s",
                timeout=_READY_SECONDS + 10,
            )
            trust = self._trust()
            with self.doors() as (controller, segment_store):
                while not (
                    controller_serves(*controller, self._authorization(), tls=trust)
                    and segment_store_serves(*segment_store, tls=trust)
                ):
                    if time.monotonic() > deadline:
                        raise LocalClusterError(f"{self.name} runs and does not serve")
                    time.sleep(_POLL_SECONDS)
        except LocalClusterError as error:
            pods = self._kubectl(
                "describe", "pods", f"--selector=app.kubernetes.io/name={self.name}"
            )
            raise LocalClusterError(f"{error}\n{pods[-2000:]}") from error

    @contextmanager
    def doors(self) -> Iterator[tuple[tuple[str, int], tuple[str, int]]]:
        """Yield hosts and ports at which this machine reaches controller and segment store."""
        if self._cluster.pods_reachable:
            yield self.controller, self.segment_store
            return
        with ExitStack() as stack:
            controller, segment_store = (
                stack.enter_context(
                    self._cluster.forward(manifests.NAMESPACE, f"deployment/{self.name}", port)
                )
                for port in (manifests.CONTROLLER_PORT, manifests.SEGMENTSTORE_PORT)
            )
            yield (HOST, controller), (HOST, segment_store)

    def _trust(self) -> ssl.SSLContext | None:
        """Return the TLS context of a probe; None if the store speaks no TLS."""
        if self.bundle is None:
            return None
        context = ssl.create_default_context(cafile=self.bundle)
        context.check_hostname = False  # the probe uses the pod's address
        context.set_alpn_protocols(["h2"])
        return context

    def _authorization(self) -> str | None:
        if not self.users:
            return None
        pair = f"{self.users[0].name}:{self.users[0].password}"
        return f"Basic {base64.b64encode(pair.encode()).decode()}"

    def _address(self) -> str:
        if not self._cluster.pods_reachable:
            raise LocalClusterError(
                f"this machine does not reach the pods of {self._cluster.what}: use kind as root, "
                "which adds a route, or our own cluster"
            )
        addresses = self._kubectl(
            *("get", "pods", f"--selector=app.kubernetes.io/name={self.name}"),
            "--field-selector=status.phase=Running",
            "--output=jsonpath={.items[*].status.podIP}",
        ).split()
        if not addresses:
            raise LocalClusterError(f"{self.name} does not run")
        return addresses[0]

    def _apply(self, *objects: dict[str, Any]) -> None:
        items = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        # A server-side apply, since another process may make the same objects at this moment.
        # Validation needs the whole description of the API, which a busy machine may not return in
        # time.
        words = ("apply", "--server-side", "--force-conflicts", "--validate=false", "--filename=-")
        self._cluster.kubectl(*words, stdin=json.dumps(items))

    def _kubectl(self, *arguments: str, timeout: float = 60.0) -> str:
        return self._cluster.kubectl(
            f"--namespace={manifests.NAMESPACE}", *arguments, timeout=timeout
        )

    def _command(self, *arguments: str) -> Sequence[str]:
        return self._cluster.kubectl_command(f"--namespace={manifests.NAMESPACE}", *arguments)
