"""Start Spark's JVM as a child process, without Spark's own scripts."""

from __future__ import annotations

import contextvars
import json
import logging
import os
import struct
import subprocess
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any

import structlog

from sluice.errors import InfrastructureError
from sluice.pipelines.spark.java import java, options

if TYPE_CHECKING:
    from pathlib import Path

    from py4j.java_gateway import JavaGateway

_log = structlog.get_logger()

GATEWAY = "org.apache.spark.api.python.PythonGatewayServer"
START_SECONDS = 120.0


class Jvm:
    """A JVM that runs Spark's gateway for Python. It ends when this process ends.

    Args:
        heap: the largest heap, in Java's notation.
        scratch: a folder for the JVM's files.
        address: the machine's address for Spark, which would guess one otherwise.
        quiet: whether Spark's messages are logged at debug level only.

    Attributes:
        process: the JVM's process.
        tail: the last lines that the JVM wrote to stderr.

    Raises:
        InfrastructureError: there is no Java.
    """

    def __init__(self, *, heap: str, scratch: Path, address: str, quiet: bool) -> None:
        self._info = scratch / "gateway"
        self._quiet = quiet
        self.tail: deque[str] = deque(maxlen=5)
        command = [java(), *options(heap, {"java.io.tmpdir": str(scratch)}), GATEWAY]
        self.process = subprocess.Popen(  # noqa: S603 - the command is made here
            command,
            stdin=subprocess.PIPE,  # the gateway ends when this pipe does
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={
                **os.environ,
                "_PYSPARK_DRIVER_CONN_INFO_PATH": str(self._info),
                "SPARK_CONNECT_MODE": "0",
                "SPARK_LOCAL_DIRS": str(scratch),
                "SPARK_LOCAL_IP": address,
            },
            start_new_session=True,  # Ctrl-C is for this process, which then stops Spark in order
        )
        self._reader = threading.Thread(
            target=contextvars.copy_context().run, args=(self._relay,), name="jvm", daemon=True
        )
        self._reader.start()

    @property
    def alive(self) -> bool:
        """Whether the JVM runs."""
        return self.process.poll() is None

    def exit_code(self, *, seconds: float) -> int | None:
        """Return the JVM's exit code; None if it does not end within this time."""
        try:
            return self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            return None

    def connect(self) -> JavaGateway:
        """Wait until the gateway serves, and connect to it.

        Raises:
            InfrastructureError: the JVM ended, or did not serve in time.
        """
        deadline = time.monotonic() + START_SECONDS
        while not self._info.exists():  # the gateway renames it into place when it is complete
            if not self.alive or time.monotonic() > deadline:
                self._reader.join(timeout=1)
                raise InfrastructureError(
                    "; ".join(["Spark did not start: the JVM ended", *self.tail]),
                    remedy="Install a Java runtime of version 17 or newer and set JAVA_HOME.",
                )
            time.sleep(0.01)
        info = self._info.read_bytes()
        port, length = struct.unpack(">ii", info[:8])
        return _gateway(port, info[8 : 8 + length].decode(), self.process)

    def stop(self) -> None:
        """Kill the JVM at once. Stopping the context has done the cleaning up before."""
        self.process.kill()
        self.process.wait()
        if self.process.stdin is not None:
            self.process.stdin.close()
        self._reader.join(timeout=5)

    def _relay(self) -> None:
        """Log the lines that the JVM and the Python workers write to stderr."""
        if self.process.stderr is None:
            return
        with self.process.stderr as lines:
            for raw in lines:
                line = raw.decode(errors="replace").rstrip()
                level, said = read_line(line)
                if line:
                    self.tail.append(said.get("event", line))
                    _log.log(logging.DEBUG if self._quiet else level, **said)


def read_line(line: str) -> tuple[int, dict[str, Any]]:
    """Parse a line of the JVM's stderr into a log level and the fields of a log entry.

    Lines of log4j are JSON (see log4j2.properties). Others come from Java itself or from Python
    workers, and become warnings.
    """
    try:
        said = json.loads(line)
    except ValueError:
        said = None
    if not isinstance(said, dict) or "event" not in said:
        return logging.WARNING, {"event": line, "logger": "jvm"}
    level = logging.getLevelNamesMapping().get(str(said.pop("level", "")), logging.WARNING)
    return level, {key: value for key, value in said.items() if value}


def _gateway(port: int, token: str, process: subprocess.Popen[bytes]) -> JavaGateway:
    """Connect PySpark to the gateway of a JVM that serves at this port."""
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415 - slow

    given = {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": token}
    os.environ.update(given)
    try:
        gateway: JavaGateway = launch_gateway()  # type: ignore[no-untyped-call]
    finally:
        for name in given:
            del os.environ[name]
    gateway.proc = process
    return gateway
