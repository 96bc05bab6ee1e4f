"""Send spans to a collector, by OTLP over HTTP.

A collector that is away or slow costs spans, and nothing else: they wait in a queue of bounded
length, one thread sends them, each sending has a deadline, and a process that ends waits for a few
seconds at most. The log says once that spans are lost, and once that they are not any more.
"""

from __future__ import annotations

import logging
import os
import threading
from typing import TYPE_CHECKING, Final

import requests
import structlog
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from sluice import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.trace import Span

_log = structlog.get_logger()

PROTOCOLS: Final = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")

LIMITS: Final = SpanLimits(
    max_span_attributes=32,
    max_events=0,
    max_links=0,
    max_attribute_length=256,
    max_span_attribute_length=256,
)
"""The most that a span has: a long name does not make it larger."""

LAST_SECONDS: Final = 3.0
"""Seconds that a process which ends gives the spans that still wait."""

HEADERS: Final = ("OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS")

_PROTOCOL: Final = "http/protobuf"
_PARENT: Final = "traceparent"
_CARRIER: Final = TraceContextTextMapPropagator()
_EXPORTER: Final = "opentelemetry.exporter"
_MOST_WORDS: Final = 200


class Tracer:
    """The maker of spans of a process.

    Args:
        service: the process' name, unless OTEL_SERVICE_NAME says otherwise.
        exporter: takes the spans that have ended.
    """

    def __init__(self, service: str, exporter: Reporting) -> None:
        self._provider = TracerProvider(
            resource=_resource(service), span_limits=LIMITS, shutdown_on_exit=False
        )
        self._exporter = exporter
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("sluice", __version__)

    def begin(
        self, name: str, parent: str, since: int | None, attributes: Mapping[str, str | int | bool]
    ) -> Span:
        """Begin a span; see `tracing.begin`."""
        # With an empty Context, a damaged parent makes a new trace, and not a child of any other.
        context = _CARRIER.extract({_PARENT: parent}, Context()) if parent else None
        return self._tracer.start_span(
            name, context=context, start_time=since, attributes=dict(attributes)
        )

    def within(self, span: Span) -> AbstractContextManager[Span]:
        """Make a span that of this thread or task, for a block."""
        return trace.use_span(span, record_exception=False, set_status_on_exception=False)

    def current(self) -> str:
        """Return the context of the present span; empty if there is none."""
        return text_of(trace.get_current_span())

    def flush(self) -> None:
        """Send what waits."""
        self._provider.force_flush()

    def stop(self) -> None:
        """Send what waits, for a few seconds at most."""
        self._exporter.end_soon()
        ending = threading.Thread(target=self._provider.shutdown, daemon=True)
        ending.start()
        ending.join(LAST_SECONDS)


class Reporting(SpanExporter):
    """An exporter that says when spans begin to be lost, and when they are not any more.

    Args:
        exporter: the exporter that sends them.
    """

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self._trouble = _Trouble(self._give_up)
        self._lost = 0
        self._ends = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send spans."""
        result = self._exporter.export(spans)
        if result is not SpanExportResult.SUCCESS:
            if not self._lost:
                _log.warning("traces cannot be sent", why=self._trouble.first)
            self._lost += len(spans)
            return result
        if self._lost:
            _log.info("traces are sent again", lost=self._lost)
        self._lost, self._trouble.first = 0, ""
        return result

    def end_soon(self) -> None:
        """Try nothing twice from now on: the process waits for it."""
        self._ends = True
        if self._trouble.first:
            self._give_up()

    def shutdown(self) -> None:
        """End the exporter."""
        self._exporter.shutdown()

    def _give_up(self) -> None:
        """End the exporter if it waits for another try, and the process for it."""
        if self._ends:
            self._ends = False
            self._exporter.shutdown()


class _Trouble(logging.Handler):
    """What the library has to complain of, in place of its lines in the log.

    Each batch that is lost would have some of them.

    Args:
        told: called with each complaint.
    """

    first = ""

    def __init__(self, told: Callable[[], None]) -> None:
        super().__init__(logging.WARNING)
        self._told = told
        library = logging.getLogger("opentelemetry")
        library.handlers, library.propagate = [self], False

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the beginning of the first complaint of the exporter."""
        if not record.name.startswith(_EXPORTER):
            return  # others tell of attributes that are cut, and of a queue that is full
        words = record.getMessage()[:_MOST_WORDS]
        self.first = self.first or "".join(one if one.isprintable() else " " for one in words)
        self._told()


def begun(service: str) -> Tracer | None:
    """Return a tracer by the environment's settings. Without usable settings, log it: None.

    The headers are taken out of the environment, so that no process that this one starts has them.
    """
    try:
        _check(os.environ)
        # An answer that leads elsewhere would get the headers.
        session = requests.Session()
        session.max_redirects = 0
        tracer = Tracer(service, Reporting(OTLPSpanExporter(session=session)))
    except Exception as error:  # noqa: BLE001 - tracing must not keep anything from its work
        _log.warning("nothing is traced", why=f"{type(error).__name__}: {error}"[:_MOST_WORDS])
        return None
    finally:
        for name in HEADERS:
            os.environ.pop(name, None)
    return tracer


def text_of(span: Span) -> str:
    """Return the context of a span as text; empty if it has none."""
    carrier: dict[str, str] = {}
    _CARRIER.inject(carrier, trace.set_span_in_context(span, Context()))
    return carrier.get(_PARENT, "")


def fail(span: Span, reason: str) -> None:
    """Mark a span as failed, by a reason."""
    span.set_attribute("error.type", reason)
    span.set_status(trace.Status(trace.StatusCode.ERROR, reason))


def _resource(service: str) -> Resource:
    """Return what all spans of the process have; OTEL_RESOURCE_ATTRIBUTES may add to it."""
    words = os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    named = os.environ.get("OTEL_SERVICE_NAME") or "service.name=" in words
    attributes = {"service.version": __version__}
    return Resource.create(attributes if named else attributes | {"service.name": service})


def _check(environment: Mapping[str, str]) -> None:
    """Check the settings that the exporter does not read.

    Raises:
        ValueError: they ask for what is not there; the text names the variable.
    """
    exporter = environment.get("OTEL_TRACES_EXPORTER", "").strip() or "otlp"
    if exporter != "otlp":
        raise ValueError(f"OTEL_TRACES_EXPORTER is {exporter!r}, and may be otlp or none")
    for name in PROTOCOLS:
        if (wanted := environment.get(name) or _PROTOCOL) != _PROTOCOL:
            raise ValueError(f"{name} is {wanted!r}, and may be {_PROTOCOL} only")
