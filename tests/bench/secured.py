"""A copy within a store with TLS, against one within a store without.

Only the step that reads and appends all bytes counts. Both stores run on this machine, so its
processors also do the stores' part of the encryption.
"""

from __future__ import annotations

import os
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bench.executors import SLOTS, copy, threads
from bench.model import MEGABYTE, Goal, Measurement, Source
from bench.ours import Stopwatch, copy_job
from localstore import ForeignClient, Standalone
from sluice.core.values.model import StreamName

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

KEY: Final = "tls_vs_plain"

_SCOPE: Final = "secured"
_KEYS: Final = 1000
_HEAP: Final = "6g"
_WRITE_SECONDS: Final = 600.0
_SOURCE: Final = Source.of_bytes(300e6, segments=4)
_TRUST: Final = "SSL_CERT_FILE"
"""The variable by which a client without a bundle trusts one authority and no others."""


@dataclass(frozen=True)
class Pair:
    """Two stores, and the stores' own clients.

    Attributes:
        plain: the store without TLS.
        tls: the store with TLS.
        clients: the clients, by the address of the controller.
    """

    plain: Standalone
    tls: Standalone
    clients: dict[str, ForeignClient]


@contextmanager
def both_stores(say: Callable[[str], None]) -> Iterator[Pair]:
    """Start both stores for the block."""
    with ExitStack() as stack:
        begun = time.monotonic()
        plain = stack.enter_context(Standalone(heap=_HEAP, lasting=True))
        tls = stack.enter_context(Standalone(heap=_HEAP, lasting=True, tls=True))
        clients = {
            server.controller_uri: stack.enter_context(
                ForeignClient(server.controller_uri, lasting=True, bundle=bundle)
            )
            for server, bundle in ((plain, None), (tls, tls.bundle))
        }
        before = os.environ.get(_TRUST)
        os.environ[_TRUST] = str(tls.bundle)
        say(f"two new stores serve after {time.monotonic() - begun:.1f} s")
        try:
            yield Pair(plain, tls, clients)
        finally:
            os.environ.pop(_TRUST)
            if before is not None:
                os.environ[_TRUST] = before


def measure_tls(
    pair: Pair, say: Callable[[str], None], *, runs: int, scale: float
) -> list[Measurement]:
    """Copy a stream in either store in turn, without verification.

    Args:
        pair: the stores.
        say: callback for progress messages.
        runs: number of copies in each store.
        scale: factor by which the stream shrinks.

    Raises:
        BenchError: the stream is not copied.
    """
    source = _SOURCE.scaled(scale)
    stream = StreamName(scope=_SCOPE, stream="source")
    for java in pair.clients.values():
        java.create(_SCOPE, stream.stream, segments=source.segments)
        java.write(
            _SCOPE,
            stream.stream,
            events=source.events,
            size=source.size,
            keys=_KEYS,
            seconds=_WRITE_SECONDS,
        )
    say(f"wrote {source} to both")
    speeds: dict[str, list[float]] = {uri: [] for uri in pair.clients}
    for number in range(runs + 1):
        for uri, java in pair.clients.items():
            target = StreamName(scope=_SCOPE, stream=f"target-{number}")
            watch = Stopwatch()
            copy(copy_job(uri, stream, target, tasks=SLOTS, verify=False), source, threads, watch)
            speeds[uri].append(source.bytes / watch.durations(time.monotonic())["Transfer"])
            java.delete(_SCOPE, target.stream)
        told = ", ".join(f"{values[-1] / MEGABYTE:.0f} MB/s" for values in speeds.values())
        say(f"{number} of {runs}: {told}")
    # The first copy of each was the warm-up.
    plain, tls = (tuple(values[1:]) for values in speeds.values())
    return [Measurement(KEY, tls, Goal(">=", 0.6), unit="", base=plain)]
