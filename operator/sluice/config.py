"""Settings that processes read from their environment.

No setting is a secret: credentials are files, and only the folder's name is a setting.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreTimeouts:
    """Deadlines of calls to a store, in seconds.

    Attributes:
        connect: to open a connection and shake hands.
        call: for one request and its answer.
        stall: for the next byte or acknowledgement of a transfer.
        rest: for which a store that does not answer is not asked again, then by one thread only;
            0 to ask it always.
    """

    connect: float = 10.0
    call: float = 30.0
    stall: float = 30.0
    rest: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a process.

    Attributes:
        cluster_id: tells copies of equally named resources in different clusters apart
            (`SLUICE_CLUSTER_ID`, default `local`).
        credentials_dir: folder of Secrets as Kubernetes mounts them, `<secret>/username` and
            `<secret>/password`, for S3 `<secret>/accessKeyId` and `<secret>/secretAccessKey`
            (`SLUICE_CREDENTIALS_DIR`, default none).
        volumes_dir: folder of volumes that hold archives, each mounted under the name of its claim
            (`SLUICE_VOLUMES_DIR`, default none).
        part_bytes: longest part of a segment; tasks copy parts side by side (`SLUICE_PART_BYTES`,
            default 256 MiB, at least 8 MiB).
        spark_bytes: a copy of one stream of up to so many bytes is run by threads of one process,
            and a larger one by Spark, whose start takes a second (`SLUICE_SPARK_BYTES`, default
            64 MiB).
        far_bytes: bytes that the target of a copy may be behind the source that it follows, before
            they are staged and verified as those of any large copy, and not appended
            (`SLUICE_FAR_BYTES`, default 1 GiB).
        executor_timeout: seconds that a driver waits for executors before it gives up
            (`SLUICE_EXECUTOR_TIMEOUT`, default 300).
        timeouts: see StoreTimeouts (`SLUICE_STORE_TIMEOUT` sets `call` and `stall`, in seconds).
    """

    cluster_id: str = "local"
    credentials_dir: Path | None = None
    volumes_dir: Path | None = None
    part_bytes: int = 256 << 20
    spark_bytes: int = 64 << 20
    far_bytes: int = 1 << 30
    executor_timeout: float = 300.0
    timeouts: StoreTimeouts = field(default_factory=StoreTimeouts)

    @classmethod
    def from_environment(cls) -> Settings:
        """Read the environment; an unset variable means its default.

        Raises:
            ValueError: a variable has a wrong value; the text names it.
        """
        folder = os.environ.get("SLUICE_CREDENTIALS_DIR")
        volumes = os.environ.get("SLUICE_VOLUMES_DIR")
        seconds = os.environ.get("SLUICE_STORE_TIMEOUT")
        timeouts = StoreTimeouts()
        if seconds:
            deadline = _seconds("SLUICE_STORE_TIMEOUT", seconds)
            timeouts = StoreTimeouts(call=deadline, stall=deadline)
        return cls(
            cluster_id=os.environ.get("SLUICE_CLUSTER_ID") or "local",
            credentials_dir=Path(folder) if folder else None,
            volumes_dir=Path(volumes) if volumes else None,
            part_bytes=_bytes("SLUICE_PART_BYTES", 256 << 20),
            spark_bytes=_bytes("SLUICE_SPARK_BYTES", 64 << 20),
            far_bytes=_bytes("SLUICE_FAR_BYTES", 1 << 30),
            executor_timeout=_seconds(
                "SLUICE_EXECUTOR_TIMEOUT", os.environ.get("SLUICE_EXECUTOR_TIMEOUT") or "300"
            ),
            timeouts=timeouts,
        )


def _bytes(name: str, default: int) -> int:
    """Return the bytes in an environment variable. ValueError if they are no number from 0 on."""
    text = os.environ.get(name) or str(default)
    if not (text.isascii() and text.isdecimal()):
        raise ValueError(f"{name} is {text!r}, and not a number of bytes")
    return int(text)


def _seconds(name: str, text: str) -> float:
    """Return the seconds in an environment variable. ValueError if they are not positive."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise ValueError(f"{name} is {text!r}, and not a positive number of seconds")
    return seconds
