"""Read a running copy's limits from a file, again several times a second."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import structlog
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from sluice.core.archive.retention import Retention
from sluice.engine.tasks.limits import Limits

if TYPE_CHECKING:
    from pathlib import Path

    from sluice.engine.tasks.clock import Clock

_log = structlog.get_logger()

SLICE_SECONDS = 1.5
SLICE_BYTES = 64 << 20
"""A driver's slices are short, so that new limits apply soon and a stop loses little work."""

AGAIN_SECONDS: Final = 0.1
"""Seconds for which limits hold that were read: they are asked for before every block."""


class _File(BaseModel):
    """The content of the file; null means no limit of its own.

    Unknown keys are ignored, since a newer operator may write them.
    """

    model_config = ConfigDict(alias_generator=to_camel, frozen=True)

    bytes_per_second: int | None = Field(default=None, ge=1)
    in_flight_bytes: int | None = Field(default=None, ge=1)
    parallelism: int | None = Field(default=None, ge=1)
    stop_at_failure: bool = False
    keep_last: int | None = Field(default=None, ge=1)
    keep_seconds: int | None = Field(default=None, ge=1)


class Controls:
    """Limits from a JSON file: `{"bytesPerSecond": int|null, "inFlightBytes": int|null}`.

    The file of a ScopeCopy has `"parallelism": int|null, "stopAtFailure": bool` as well. The file
    of a StreamArchive has `"keepLast": int|null, "keepSeconds": int|null`.

    Call the object to get the current limits. If the file is missing or damaged, the last good
    limits stay in force, and one warning is logged.

    Args:
        path: the file; None for a copy without limits.
        clock: time.
    """

    def __init__(self, path: Path | None, clock: Clock = time) -> None:
        self._path = path
        self._clock = clock
        self._due = clock.monotonic()
        self._last = _limits(_File())
        self._damaged = False

    def __call__(self) -> Limits:
        """Return the current limits, from the file as it was a tenth of a second ago at most."""
        now = self._clock.monotonic()
        if self._path is None or now < self._due:
            return self._last
        self._due = now + AGAIN_SECONDS
        try:
            limits = _limits(_File.model_validate_json(self._path.read_bytes()))
        except (OSError, ValidationError) as error:
            if not self._damaged:
                _log.warning(
                    "controls cannot be read, the last limits hold",
                    file=str(self._path),
                    error=_reason(error),
                )
            self._damaged = True
            return self._last
        if limits != self._last:
            _log.info(
                "limits",
                bytes_per_second=limits.bytes_per_second,
                in_flight_bytes=limits.in_flight_bytes,
                parallelism=limits.parallelism,
                stop_at_failure=limits.stop_at_failure,
            )
        self._last, self._damaged = limits, False
        return limits


def read_retention(path: Path | None) -> Retention:
    """Read the retention policy from the same file. All runs are kept if it cannot be read."""
    if path is None:
        return Retention()
    try:
        file = _File.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        _log.warning("controls cannot be read", file=str(path), error=_reason(error))
        return Retention()
    return Retention(keep_last=file.keep_last, keep_seconds=file.keep_seconds)


def _limits(file: _File) -> Limits:
    default = Limits()
    return Limits(
        in_flight_bytes=file.in_flight_bytes or default.in_flight_bytes,
        bytes_per_second=file.bytes_per_second,
        slice_seconds=SLICE_SECONDS,
        slice_bytes=SLICE_BYTES,
        parallelism=file.parallelism or default.parallelism,
        stop_at_failure=file.stop_at_failure,
    )


def _reason(error: OSError | ValidationError) -> str:
    """Describe an error in one line."""
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(map(str, first["loc"]))
    return f"{where}: {first['msg']}" if where else first["msg"]
