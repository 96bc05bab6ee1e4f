"""A gateway as a process of this machine."""

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
    """A gateway with a user and a password of its own.

    It accepts only signed requests, on a port of the loopback interface. Its data are deleted when
    it stops, unless `data` is given.

    Args:
        data: directory of the buckets; a temporary directory if left out.
    """

    def __init__(self, data: Path | None = None) -> None:
        self._scratch = Scratch("s3gateway")
        self.data = data or self._scratch.path / "buckets"
        self.access = "sluice"
        self.secret = secrets.token_hex(16)
        (self.port,) = free_ports(1)
        self.process: Process | None = None

    def __enter__(self) -> Self:
        """Start the gateway."""
        self.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        """Stop the gateway."""
        self.stop()

    @property
    def endpoint(self) -> str:
        """The gateway's URL."""
        return f"http://{HOST}:{self.port}"

    def start(self) -> None:
        """Start the gateway with its present data unless it runs, and wait until it serves.

        Raises:
            LocalStoreError: the gateway does not start.
            LocalClusterError: the gateway cannot be compiled.
        """
        if self.process is not None and self.process.alive:
            return
        self.data.mkdir(parents=True, exist_ok=True)
        command = [str(versitygw()), "--port", f"{HOST}:{self.port}", "--quiet"]
        command += ["posix", str(self.data)]
        # Not as arguments, which all users of the machine can read.
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
        except BaseException:  # an interrupt must not leave a server behind either
            self.stop()
            raise

    def kill(self) -> None:
        """Kill the gateway, as in a crash. Its data stay."""
        if self.process is not None:
            self.process.kill()

    def stop(self) -> None:
        """Kill the gateway and delete its temporary directory."""
        self.kill()
        self._scratch.remove()

    def serves(self) -> bool:
        """Tell whether the gateway accepts connections."""
        try:
            socket.create_connection((HOST, self.port), _CONNECT_SECONDS).close()
        except OSError:
            return False
        return True

    def make_bucket(self, name: str) -> str:
        """Create a bucket, which is a directory to the gateway.

        Returns:
            The name.
        """
        (self.data / name).mkdir()
        return name
