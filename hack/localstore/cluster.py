"""Pravega as a small cluster: four processes that can be killed without losing data."""

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

from localstore.accounts import User
from localstore.cluster_config import ALL, NAMES, Layout, Name
from localstore.errors import LocalStoreError
from localstore.ports import HOST
from localstore.probe import controller_serves, is_listening, segment_store_serves
from localstore.process import Process, one_start
from localstore.scratch import Scratch
from localstore.security import Security, server_certificates
from localstore.state import living_processes, save_processes

# A killed server serves again only after its old session with ZooKeeper has expired.
_READY_SECONDS = 300.0
_STARTS = 4
"""Starts of a server that ends while it starts, before it counts as broken."""

# A graceful shutdown of the controller takes ten seconds. No server needs it, because all recover
# from a crash.
_GRACE_SECONDS = 3.0


class Cluster:
    """ZooKeeper, one bookie, a controller, and one or two segment stores.

    Args:
        data: directory of data, ports, logs and the ids of running servers; a temporary directory
            if left out.
        tethered: whether the servers must end with this interpreter.
        published_port: port at which clients find the segment store, if there is a proxy in front
            of it.
        pair: whether there are two segment stores, which share the containers.
        users: accounts; no login is required if left out. The servers use the first, which
            therefore needs all rights.
        token_seconds: life of the delegation tokens.
        tls: whether Pravega's servers speak TLS and nothing else, with certificates that it makes.
    """

    def __init__(
        self,
        data: Path | None = None,
        *,
        tethered: bool = True,
        published_port: int | None = None,
        pair: bool = False,
        users: Sequence[User] = (),
        token_seconds: int = 600,
        tls: bool = False,
    ) -> None:
        self._names = ALL if pair else NAMES
        self._scratch: Scratch | None = None
        if data is None:
            self._scratch = Scratch("cluster")
            data = self._scratch.path
        self.data = data
        self._tethered = tethered
        data.mkdir(parents=True, exist_ok=True)
        self._security = Security(
            users=users,
            accounts=data / "accounts",
            token_seconds=token_seconds,
            tls=server_certificates(data) if tls else None,
        )
        self._security.write(users)
        self._layout = Layout.load(data, self._security, published=published_port)
        self.processes = living_processes(data)

    def __enter__(self) -> Self:
        """Start the cluster."""
        self.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        """Stop the cluster."""
        self.stop()

    @property
    def controller(self) -> tuple[str, int]:
        """The host and port of the controller's gRPC service."""
        return HOST, self._layout.ports.controller

    @property
    def controller_uri(self) -> str:
        """The controller's address in the form that Pravega's clients expect."""
        return self._layout.controller_uri

    @property
    def bundle(self) -> Path:
        """The certificate of the servers' authority, in PEM."""
        return self.data / "ca.crt"

    @property
    def segment_store(self) -> tuple[str, int]:
        """The host and port of the first segment store."""
        return HOST, self._layout.ports.segmentstore

    def start(self) -> None:
        """Start the servers that do not run, and wait until all serve.

        Raises:
            LocalStoreError: a server does not start.
        """
        with one_start():
            try:
                self._spawn("zookeeper")
                self._await("zookeeper")
                self._format_once()
                for name in ("bookie", "controller"):
                    self._spawn(name)
                self._await("bookie")  # without it the segment store gives up
                for name in self._names[3:]:
                    self._spawn(name)
                self.wait_ready()
            except BaseException:  # an interrupt must not leave a server behind either
                self.stop()
                raise

    def stop(self) -> None:
        """Stop all servers. The data stay unless the directory is temporary."""
        if self._scratch is None:
            self._stop_processes()
        else:  # the data are temporary, so there is nothing to save
            for process in self.processes.values():
                process.kill()
            self._scratch.remove()

    def admit(self, users: Sequence[User]) -> None:
        """Replace the accounts. The controller reads them only at its next start.

        The first account, which the servers use, must stay the same.
        """
        self._security.write(users)

    def kill(self, name: Name) -> None:
        """Kill one server, as in a crash."""
        self._process(name).kill()

    def restart(self, name: Name) -> None:
        """Stop one server if it runs, start it again, and wait until it serves.

        The controller serves only while the segment store does. Other servers may need longer to
        recover: see `wait_ready`. A server that ends during its start is started again a few times,
        as by a kubelet. For example, Pravega's controller ends if another controller's bucket
        vanishes while it lists the buckets.

        Raises:
            LocalStoreError: the server ended each time, or does not serve in time.
        """
        self._process(name).stop()
        for left in reversed(range(_STARTS)):
            del self.processes[name]
            self._spawn(name)
            try:
                self._await(name)
            except LocalStoreError:
                if not left or self.processes[name].alive:
                    raise
            else:
                return

    def wait_ready(self) -> None:
        """Wait until all serve, for example after the bookie's absence, when the store recovers."""
        for name in self._names:
            self._await(name)

    def serves(self) -> bool:
        """Tell whether the whole cluster answers."""
        return all(self._ready(name)() for name in self._names)

    def _process(self, name: Name) -> Process:
        if name not in self.processes:
            raise LocalStoreError(f"{name} was not started")
        return self.processes[name]

    def _spawn(self, name: Name) -> None:
        if name in self.processes and self.processes[name].alive:
            return
        self.processes[name] = Process.spawn(
            f"Pravega's {name}",
            self._layout.command(name),
            log=self._layout.log(name),
            tethered=self._tethered,
        )
        save_processes(self.data, self.processes)

    def _await(self, name: Name) -> None:
        self._process(name).wait_ready(self._ready(name), seconds=_READY_SECONDS)

    def _ready(self, name: Name) -> Callable[[], bool]:
        ports = self._layout.ports
        first, second = self.segment_store, (HOST, ports.segmentstore2)
        others = [second] if self._names is ALL else []
        header, tls = self._security.authorization, self._security.context()
        checks: dict[Name, Callable[[], bool]] = {
            "zookeeper": lambda: is_listening(HOST, ports.zookeeper),
            "bookie": lambda: is_listening(HOST, ports.bookie),
            "controller": lambda: controller_serves(*self.controller, header, tls=tls),
            "segmentstore": lambda: segment_store_serves(*first, *others, tls=tls),
            "segmentstore2": lambda: segment_store_serves(*second, first, tls=tls),
        }
        return checks[name]

    def _format_once(self) -> None:
        formatted = self.data / "formatted"
        if formatted.exists():
            return
        with self._layout.log("bookie").open("ab") as log:
            done = subprocess.run(
                self._layout.format_command(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                check=False,
                timeout=_READY_SECONDS,
            )
        if done.returncode != 0:
            raise LocalStoreError(f"BookKeeper cannot be formatted, see {log.name}")
        formatted.touch()

    def _stop_processes(self) -> None:
        for name in reversed(self._names):  # dependent servers stop before their dependencies
            if name in self.processes:
                self.processes[name].stop(grace=_GRACE_SECONDS)
