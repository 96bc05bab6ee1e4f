"""Trace what a process does, as spans of OpenTelemetry, if the environment asks for it.

Tracing is off by default. Then nothing of OpenTelemetry is imported, and a span does nothing.

A span's context is passed on as text, in the form of W3C's `traceparent`: to other threads, and to
other processes in the variable TRACEPARENT. Attributes have names, numbers and reasons, and never
messages: these may quote what a store or a tenant says.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from opentelemetry.trace import Span as Recording

    from sluice.tracing.otlp import Tracer

VARIABLE: Final = "TRACEPARENT"
"""The environment variable that has the context of a process."""

ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")

_NAMESPACE: Final = "sluice"
"""The first part of the names of all attributes."""

Value = str | int | bool | None
"""The value of an attribute; None for none."""

_tracer: Tracer | None = None


class Span:
    """A span that has begun.

    Args:
        recording: the span of the SDK; None if tracing is off.
    """

    __slots__ = ("_recording",)

    def __init__(self, recording: Recording | None = None) -> None:
        self._recording = recording

    @property
    def context(self) -> str:
        """The context for children of this span; empty if tracing is off."""
        if self._recording is None:
            return ""
        from sluice.tracing import otlp  # noqa: PLC0415 - not imported while tracing is off

        return otlp.text_of(self._recording)

    def note(self, **attributes: Value) -> None:
        """Set attributes, whose names get the prefix `sluice.`."""
        if self._recording is not None:
            self._recording.set_attributes(_named(attributes))

    def fail(self, reason: str) -> None:
        """Mark the span as failed, by a reason of the catalogue or the type of an error."""
        if self._recording is not None:
            from sluice.tracing import otlp  # noqa: PLC0415 - as above

            otlp.fail(self._recording, reason)

    def end(self) -> None:
        """End the span, so that it is sent."""
        if self._recording is not None:
            self._recording.end()


_NOTHING: Final = Span()


def is_on() -> bool:
    """Tell whether this process traces."""
    return _tracer is not None


def inherited() -> str:
    """Return the context that the process was started with; empty if there is none."""
    return os.environ.get(VARIABLE, "")


def current() -> str:
    """Return the context of the span that this thread or task is in; empty if there is none."""
    return "" if _tracer is None else _tracer.current()


def now() -> int:
    """Return the time for the beginning of a span, in nanoseconds since 1970."""
    return time.time_ns()


def begin(name: str, *, parent: str = "", since: int | None = None, **attributes: Value) -> Span:
    """Begin a span. It is sent once it is ended.

    Args:
        name: its name.
        parent: the context of its parent; by default the span that this thread or task is in.
        since: when it began, if that was earlier; see `now`.
        attributes: see `Span.note`.
    """
    if _tracer is None:
        return _NOTHING
    return Span(_tracer.begin(name, parent, since, _named(attributes)))


@contextmanager
def span(
    name: str, *, parent: str = "", since: int | None = None, **attributes: Value
) -> Iterator[Span]:
    """Have a block in a span, which fails by the reason of an error. Arguments: see `begin`."""
    if _tracer is None:
        yield _NOTHING
        return
    recording = _tracer.begin(name, parent, since, _named(attributes))
    begun = Span(recording)
    try:
        with _tracer.within(recording):
            yield begun
    except BaseException as error:
        begun.fail(reason_of(error))
        raise
    finally:
        begun.end()


@contextmanager
def started(service: str) -> Iterator[None]:
    """Trace during a block, if the environment asks for it, and then send what is left.

    No failure of tracing is one of the block.

    Args:
        service: the process' name, unless OTEL_SERVICE_NAME says otherwise.
    """
    global _tracer  # noqa: PLW0603 - one for the process, like the settings of its log
    if not _is_wanted(os.environ):
        yield
        return
    from sluice.tracing.otlp import begun  # noqa: PLC0415 - not imported while tracing is off

    _tracer = begun(service)
    try:
        yield
    finally:
        tracer, _tracer = _tracer, None
        if tracer is not None:
            tracer.stop()


def reason_of(error: BaseException) -> str:
    """Return the reason of an error of Sluice's tree, or the type of any other error."""
    return str(getattr(error, "reason", type(error).__name__))


def _is_wanted(environment: Mapping[str, str]) -> bool:
    """Tell whether the environment asks for traces.

    The specification's default is to send them to this machine. Sluice sends none by default.
    """
    if environment.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return False
    exporter = environment.get("OTEL_TRACES_EXPORTER", "").strip()
    return exporter != "none" and bool(exporter or any(map(environment.get, ENDPOINTS)))


def _named(attributes: Mapping[str, Value]) -> dict[str, str | int | bool]:
    return {
        f"{_NAMESPACE}.{name}": value for name, value in attributes.items() if value is not None
    }
