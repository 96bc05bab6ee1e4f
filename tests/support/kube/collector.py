"""A collector of traces: an HTTP server that receives OTLP and keeps the spans."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from support.until import until

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


@dataclass(frozen=True)
class Got:
    """A received span.

    Attributes:
        resource: the attributes of its process. trace, id, parent: identities in hexadecimal
            digits; `parent` is empty for a root span.
        failed: the error's message, if the span failed.
    """

    name: str
    resource: dict[str, Any]
    trace: str
    id: str
    parent: str
    attributes: dict[str, Any]
    failed: str | None
    began: int
    ended: int

    @property
    def service(self) -> str:
        """The service name of the span's process."""
        return str(self.resource["service.name"])


@dataclass
class Collector:
    """A running collector.

    Attributes:
        port: port on 127.0.0.1 at which it listens.
        status: the HTTP status of its answers.
        headers: the headers of each request.
        free: event, set while requests are answered.
        spans: the received spans.
    """

    port: int
    status: int = 200
    headers: list[dict[str, str]] = field(default_factory=list)
    spans: list[Got] = field(default_factory=list)
    free: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        """Begin without holding up requests."""
        self.free.set()

    @property
    def url(self) -> str:
        """The endpoint, as OTEL_EXPORTER_OTLP_ENDPOINT has it."""
        return f"http://127.0.0.1:{self.port}"

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold up requests during the block, or until `release`."""
        self.free.clear()
        try:
            yield
        finally:
            self.free.set()

    def release(self) -> None:
        """Answer requests again."""
        self.free.set()

    def wait(self, *names: str) -> list[Got]:
        """Wait until a span of each name came, and return all spans."""
        until(f"spans {names}", lambda: set(names) <= {one.name for one in self.spans})
        return list(self.spans)

    def only(self, name: str) -> Got:
        """Return the only span of a name."""
        (found,) = (one for one in self.spans if one.name == name)
        return found

    def below(self, parent: Got) -> list[Got]:
        """Return the children of a span, in the order of their beginnings."""
        found = (one for one in self.spans if one.parent == parent.id)
        return sorted(found, key=lambda one: one.began)


@contextmanager
def collector() -> Iterator[Collector]:
    """Yield a running collector."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    made = _Handler.collector = Collector(server.server_port)
    thread = threading.Thread(target=lambda: server.serve_forever(0.02), daemon=True)
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    collector: Collector

    def do_POST(self) -> None:
        """Keep the spans, and answer."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        known = self.collector
        known.free.wait()
        known.headers.append({name.lower(): value for name, value in self.headers.items()})
        if known.status == 200 and self.path == "/v1/traces":
            known.spans += _spans(ExportTraceServiceRequest.FromString(body))
        answer = ExportTraceServiceResponse().SerializeToString()
        self.send_response(known.status)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", str(len(answer)))
        self.send_header("Location", "/elsewhere")
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _spans(request: ExportTraceServiceRequest) -> Iterator[Got]:
    for process in request.resource_spans:
        resource = _values(process.resource.attributes)
        for scope in process.scope_spans:
            for span in scope.spans:
                failed = span.status.code == Status.STATUS_CODE_ERROR
                yield Got(
                    name=span.name,
                    resource=resource,
                    trace=span.trace_id.hex(),
                    id=span.span_id.hex(),
                    parent=span.parent_span_id.hex(),
                    attributes=_values(span.attributes),
                    failed=span.status.message if failed else None,
                    began=span.start_time_unix_nano,
                    ended=span.end_time_unix_nano,
                )


def _values(pairs: Iterable[Any]) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in pairs}
