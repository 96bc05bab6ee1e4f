"""Pravega standalone: controller, segment store and ZooKeeper in one JVM, which keeps no data."""

import base64
import shutil
import ssl
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

from localstore.accounts import User, accounts_file
from localstore.foreign_jvm import compiled_client
from localstore.jars import classpath
from localstore.java import java_command
from localstore.ports import HOST
from localstore.probe import controller_serves, segment_store_serves
from localstore.process import Process, one_start
from localstore.scratch import Scratch
from localstore.security import server_certificates
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

_READY_SECONDS = 300.0
_KEY = "standalone"


class Standalone:
    """One standalone server with free ports.

    The heap holds the log of recent writes, until the store has moved them to its storage. So the
    heap bounds fast writes: 3 GB are enough for about 2 GB.

    Args:
        data: directory of the data, which do not survive the server, and of the id of the running
            server; a temporary directory if left out.
        heap: maximum heap, in the JVM's notation.
        users: accounts; no login is required if left out. The server itself uses the first, which
            therefore needs all rights.
        tethered: whether the server must end with this interpreter.
        published_port: port at which clients find the segment store, if there is a proxy in front
            of it.
        lasting: whether the server's speed matters more than a quick start and little memory.
        tls: whether it speaks TLS and nothing else, with certificates that it makes.
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
        tls: bool = False,
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
        self._tls = tls
        self.process = living_processes(data).get(_KEY)

    def __enter__(self) -> Self:
        """Start the server."""
        self.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        """Stop the server."""
        self.stop()

    @property
    def controller(self) -> tuple[str, int]:
        """The host and port of the controller's gRPC service."""
        return HOST, self._ports["controller"]

    @property
    def controller_uri(self) -> str:
        """The controller's address in the form that Pravega's clients expect."""
        return f"{'tls' if self._tls else 'tcp'}://{HOST}:{self._ports['controller']}"

    @property
    def segment_store(self) -> tuple[str, int]:
        """The host and port of the segment store."""
        return HOST, self._ports["segmentstore"]

    @property
    def bundle(self) -> Path:
        """The certificate of the server's authority, in PEM; it exists once a server was started.

        Its private key lies beside it.
        """
        return self.data / "ca.crt"

    def start(self) -> None:
        """Start the server unless it runs, and wait until it serves.

        Raises:
            LocalStoreError: the server does not start.
        """
        if self.process is not None and self.process.alive:
            return
        storage = self.data / "storage"
        shutil.rmtree(storage, ignore_errors=True)  # it never recovers an earlier run's data
        storage.mkdir(parents=True)
        command = java_command(
            main=MAIN,
            classpath=classpath(compiled_client()),
            heap=self._heap,
            direct_memory=LARGE_DIRECT_MEMORY if self._lasting else DIRECT_MEMORY,
            properties=self._properties(storage),
            lasting=self._lasting,
            mended=True,
        )
        log = self.data / "server.log"
        log.unlink(missing_ok=True)
        with one_start():
            self.process = Process.spawn(
                "Pravega standalone", command, log=log, tethered=self._tethered
            )
            save_processes(self.data, {_KEY: self.process})
            try:
                self.process.wait_ready(self.serves, seconds=_READY_SECONDS)
            except BaseException:  # an interrupt must not leave a server behind either
                self.stop()
                raise

    def stop(self) -> None:
        """Kill the server, since there is nothing to save. Remove its temporary directory."""
        if self.process is not None:
            self.process.kill()
        if self._scratch is not None:
            self._scratch.remove()

    def serves(self) -> bool:
        """Tell whether controller and segment store answer."""
        authorization, tls = self._authorization(), self._trust()
        return controller_serves(*self.controller, authorization, tls=tls) and segment_store_serves(
            *self.segment_store, tls=tls
        )

    def _trust(self) -> ssl.SSLContext | None:
        if not self._tls:
            return None
        context = ssl.create_default_context(cafile=self.bundle)
        context.set_alpn_protocols(["h2"])
        return context

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
        if self._tls:
            place = replace(place, tls=server_certificates(self.data))
        if self.users:
            place.accounts.write_text(accounts_file(self.users))
        cache = LARGE_CACHE_BYTES if self._lasting else CACHE_BYTES
        return standalone_properties(place, self.users, cache=cache)
