"""One gateway as a process."""

import secrets
import socket
from pathlib import Path
from typing import Self

from localstore.ports import HOST, free_ports
from localstore.process import Process
from localstore.scratch import Scratch
from s3gateway.program import versitygw

_READY_SECONDS = 30.0
_CONNECT_SECONDS = 0.2


class Gateway:
    """One gateway with a user and a password of its own.

    It takes signed requests only, and its port is on the loopback interface; its data go when it
    stops, unless they lie in a directory that it is given.

    Args:
        data: Where buckets are; a temporary directory when left out.
    """

    def __init__(self, data: Path | None = None) -> None:
        self._scratch = Scratch("s3gateway")
        self.data = data or self._scratch.path / "buckets"
        self.access = "sluice"
        self.secret = secrets.token_hex(16)
        (self.port,) = free_ports(1)
        self.process: Process | None = None

    def __enter__(self) -> Self:
        """Starts it."""
        self.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        """Stops it."""
        self.stop()

    @property
    def endpoint(self) -> str:
        """Its URL."""
        return f"http://{HOST}:{self.port}"

    def start(self) -> None:
        """Starts it unless it runs, with the data that are there; returns when it serves.

        Raises:
            LocalStoreError: It does not come up.
            LocalClusterError: It cannot be compiled.
        """
        if self.process is not None and self.process.alive:
            return
        self.data.mkdir(parents=True, exist_ok=True)
        command = [str(versitygw()), "--port", f"{HOST}:{self.port}", "--quiet"]
        command += ["posix", str(self.data)]
        # Not as arguments: those are shown to everybody on the machine.
        keys = {"ROOT_ACCESS_KEY_ID": self.access, "ROOT_SECRET_ACCESS_KEY": self.secret}
        self.process = Process.spawn(
            "versitygw",
            command,
            log=self._scratch.path / "gateway.log",
            tethered=True,
            environment=keys,
        )
        try:
            self.process.wait_ready(self.serves, seconds=_READY_SECONDS)
        except BaseException:  # an interrupt, too, must leave no server behind
            self.stop()
            raise

    def kill(self) -> None:
        """Kills it as a crash would; its data stay."""
        if self.process is not None:
            self.process.kill()

    def stop(self) -> None:
        """Kills it and removes its temporary directory."""
        self.kill()
        self._scratch.remove()

    def serves(self) -> bool:
        """Tells whether it takes connections."""
        try:
            socket.create_connection((HOST, self.port), _CONNECT_SECONDS).close()
        except OSError:
            return False
        return True

    def make_bucket(self, name: str) -> str:
        """Makes a bucket: to the gateway that is a directory.

        Returns:
            The name.
        """
        (self.data / name).mkdir()
        return name
