"""Pravega as a small cluster: four processes that can be killed, and data that survive it."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Self

from localstore.cluster_config import NAMES, Layout, Name
from localstore.errors import LocalStoreError
from localstore.ports import HOST
from localstore.probe import controller_serves, is_listening, segment_store_serves
from localstore.process import Process
from localstore.scratch import Scratch
from localstore.state import living_processes, save_processes

# A server that was killed comes back only after its old session with ZooKeeper has run out.
_READY_SECONDS = 120.0
_STARTS = 4
"""How often a server is started that ends while it starts, before that counts as broken."""

# The controller would take ten seconds to say goodbye; none of the servers needs that, for all
# recover from a crash.
_GRACE_SECONDS = 3.0


class Cluster:
    """ZooKeeper, one bookie, a controller and a segment store.

    Args:
        data: Where data, ports and logs are kept, and where servers that still run are found
            again; a temporary directory when left out.
        tethered: Whether the servers must not outlive this interpreter.
        published_port: Where clients are told to find the segment store, when that is a proxy in
            front of it.
    """

    def __init__(
        self,
        data: Path | None = None,
        *,
        tethered: bool = True,
        published_port: int | None = None,
    ) -> None:
        self._scratch: Scratch | None = None
        if data is None:
            self._scratch = Scratch("cluster")
            data = self._scratch.path
        self.data = data
        self._tethered = tethered
        self._layout = Layout.load(data, published=published_port)
        self.processes = living_processes(data)

    def __enter__(self) -> Self:
        """Starts it."""
        self.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        """Stops it."""
        self.stop()

    @property
    def controller(self) -> tuple[str, int]:
        """Host and port of the controller's gRPC service."""
        return HOST, self._layout.ports.controller

    @property
    def controller_uri(self) -> str:
        """The controller as Pravega's clients want it."""
        return f"tcp://{HOST}:{self._layout.ports.controller}"

    @property
    def segment_store(self) -> tuple[str, int]:
        """Host and port of the segment store."""
        return HOST, self._layout.ports.segmentstore

    def start(self) -> None:
        """Starts what does not run and returns when all serve.

        Raises:
            LocalStoreError: A server does not come up.
        """
        try:
            self._spawn("zookeeper")
            self._await("zookeeper")
            self._format_once()
            for name in ("bookie", "controller"):
                self._spawn(name)
            self._await("bookie")  # without it the segment store gives up
            self._spawn("segmentstore")
            self._await("segmentstore")
            self._await("controller")
        except BaseException:  # an interrupt, too, must leave no server behind
            self.stop()
            raise

    def stop(self) -> None:
        """Stops all servers; the data stay unless the directory is temporary."""
        if self._scratch is None:
            self._stop_processes()
        else:  # nobody needs the data any more
            for process in self.processes.values():
                process.kill()
            self._scratch.remove()

    def kill(self, name: Name) -> None:
        """Kills one server as a crash would."""
        self._process(name).kill()

    def restart(self, name: Name) -> None:
        """Starts one server again, after stopping it if it runs, and returns when it serves.

        The controller serves only while the segment store does. What others make of the absence is
        theirs: see `wait_ready`. A server that ends while it starts is started again a few times,
        as by a kubelet: Pravega's controller ends if another's bucket goes while it lists them.

        Raises:
            LocalStoreError: it ended each time, or does not serve in time.
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
        """Returns when all serve, as after the bookie was away and the store has to recover."""
        for name in NAMES:
            self._await(name)

    def serves(self) -> bool:
        """Tells whether the whole cluster answers."""
        return all(self._ready(name)() for name in NAMES)

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
        checks: dict[Name, Callable[[], bool]] = {
            "zookeeper": lambda: is_listening(HOST, ports.zookeeper),
            "bookie": lambda: is_listening(HOST, ports.bookie),
            "controller": lambda: controller_serves(*self.controller),
            "segmentstore": lambda: segment_store_serves(*self.segment_store),
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
        for name in reversed(NAMES):  # who depends on others goes first
            if name in self.processes:
                self.processes[name].stop(grace=_GRACE_SECONDS)
