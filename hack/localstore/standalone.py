"""Pravega standalone: controller, segment store and ZooKeeper in one JVM, gone when it stops."""

import base64
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from localstore.accounts import User, accounts_file
from localstore.jars import classpath
from localstore.java import java_command
from localstore.ports import HOST
from localstore.probe import controller_serves, segment_store_serves
from localstore.process import Process
from localstore.scratch import Scratch
from localstore.standalone_config import (
    CACHE_BYTES,
    DIRECT_MEMORY,
    LARGE_CACHE_BYTES,
    LARGE_DIRECT_MEMORY,
    MAIN,
    PORTS,
    Place,
    standalone_properties,
)
from localstore.state import kept_ports, living_processes, save_processes

_READY_SECONDS = 90.0
_KEY = "standalone"


class Standalone:
    """One standalone server with ports of its own choice.

    Its log of recent writes lives on the heap, so the heap bounds how much can be written before
    the store has moved it to its storage: 3 GB are good for about 2 GB written fast.

    Args:
        data: Where its data go, which do not survive its end, and where it is found again while
            it runs; a temporary directory when left out.
        heap: Most heap, in the JVM's notation.
        users: Accounts, the first of which the server itself uses and which therefore needs all
            rights; nobody has to log in when left out.
        tethered: Whether it must not outlive this interpreter.
        published_port: Where clients are told to find the segment store, when that is a proxy in
            front of it.
        lasting: Whether its speed matters more than that it starts soon, and takes little memory.
    """

    def __init__(
        self,
        data: Path | None = None,
        *,
        heap: str = "3g",
        users: Sequence[User] = (),
        tethered: bool = True,
        published_port: int | None = None,
        lasting: bool = False,
    ) -> None:
        self._published = published_port
        self._lasting = lasting
        self.users = tuple(users)
        self._heap = heap
        self._tethered = tethered
        self._scratch: Scratch | None = None
        if data is None:
            self._scratch = Scratch("standalone")
            data = self._scratch.path
        self.data = data
        self._ports = kept_ports(data, PORTS)
        self.process = living_processes(data).get(_KEY)

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
        return HOST, self._ports["controller"]

    @property
    def controller_uri(self) -> str:
        """The controller as Pravega's clients want it."""
        return f"tcp://{HOST}:{self._ports['controller']}"

    @property
    def segment_store(self) -> tuple[str, int]:
        """Host and port of the segment store."""
        return HOST, self._ports["segmentstore"]

    def start(self) -> None:
        """Starts it unless it runs, and returns when it serves.

        Raises:
            LocalStoreError: It does not come up.
        """
        if self.process is not None and self.process.alive:
            return
        storage = self.data / "storage"
        shutil.rmtree(storage, ignore_errors=True)  # it never recovers what an earlier run left
        storage.mkdir(parents=True)
        command = java_command(
            main=MAIN,
            classpath=classpath(),
            heap=self._heap,
            direct_memory=LARGE_DIRECT_MEMORY if self._lasting else DIRECT_MEMORY,
            properties=self._properties(storage),
            lasting=self._lasting,
        )
        log = self.data / "server.log"
        log.unlink(missing_ok=True)
        self.process = Process.spawn(
            "Pravega standalone", command, log=log, tethered=self._tethered
        )
        save_processes(self.data, {_KEY: self.process})
        try:
            self.process.wait_ready(self.serves, seconds=_READY_SECONDS)
        except BaseException:  # an interrupt, too, must leave no server behind
            self.stop()
            raise

    def stop(self) -> None:
        """Kills it, for there is nothing to save, and removes its temporary directory."""
        if self.process is not None:
            self.process.kill()
        if self._scratch is not None:
            self._scratch.remove()

    def serves(self) -> bool:
        """Tells whether controller and segment store answer."""
        authorization = self._authorization()
        return controller_serves(*self.controller, authorization) and segment_store_serves(
            *self.segment_store
        )

    def _authorization(self) -> str | None:
        if not self.users:
            return None
        pair = f"{self.users[0].name}:{self.users[0].password}"
        return f"Basic {base64.b64encode(pair.encode()).decode()}"

    def _properties(self, storage: Path) -> dict[str, object]:
        place = Place(
            ports=self._ports,
            listens=HOST,
            host=HOST,
            port=self._published or self._ports["segmentstore"],
            storage=storage,
            empty=self.data / "empty.properties",
            accounts=self.data / "accounts",
        )
        place.empty.touch()
        if self.users:
            place.accounts.write_text(accounts_file(self.users))
        cache = LARGE_CACHE_BYTES if self._lasting else CACHE_BYTES
        return standalone_properties(place, self.users, cache=cache)
