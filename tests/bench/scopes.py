"""Copies of whole scopes by the command on this machine, timed from its start to its end."""

from __future__ import annotations

import json
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import uuid4

from bench.model import BenchError, Goal, Measurement
from localstore import ForeignClient, Standalone
from support.command.scope_command import ScopeCopy, plan, resource, store_resource
from support.command.sluice_command import Filed
from support.store.scopes import STREAMS as MIXED
from support.store.scopes import Sketch, fill

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from bench.relay import Relay
    from support.command.sluice_command import Finished

    Say = Callable[[str], None]

RUN_KEY: Final = "small_streams_run_s"
COPIES_KEY: Final = "scope_30_vs_copies"
PLAN_KEY: Final = "scope_plan_5000_s"
KEYS: Final = (RUN_KEY, COPIES_KEY, PLAN_KEY)

SMALL: Final = tuple(
    Sketch(name=f"small-{number:03}", events=20 + number % 40) for number in range(500)
)
"""Streams of two to six kilobytes."""

MANY: Final = 5000
AT_ONCE: Final = 16
"""Streams of a scope that a store makes in parallel."""

RUNS: Final = 3

_HEAP: Final = "8g"
_SECONDS: Final = 900.0
_MAKE: Final = {"target": {"scopePolicy": "CreateIfAbsent"}}


class Place(NamedTuple):
    """A store on this machine, its official client, and a folder."""

    store: Standalone
    java: ForeignClient
    folder: Path


class Copies(Filed):
    """StreamCopies of some streams of a scope, in one file.

    Args:
        place: the store to copy in, and a folder for the file.
        source: the source scope.
        target: the target scope.
        names: names of the streams.
    """

    log_level = ScopeCopy.log_level

    def __init__(self, place: Place, source: str, target: str, names: Sequence[str]) -> None:
        self.environment = {}
        self._place = place
        self._scopes = {"source": source, "target": target}
        self._names = names

    @property
    def file(self) -> Path:
        """The file, rewritten at each access."""
        bodies = [store_resource("local", self._place.store.controller_uri)]
        for name in self._names:
            sides = {
                side: {"storeRef": {"name": "local"}, "scope": scope, "stream": name}
                for side, scope in self._scopes.items()
            }
            bodies.append(resource("StreamCopy", name, sides))
        path = self._place.folder / "copies.yaml"
        path.write_text("---\n".join(json.dumps(body) + "\n" for body in bodies))
        return path


@contextmanager
def local_store(say: Say, *, relay: Relay | None = None) -> Iterator[Place]:
    """Start an empty store for the block.

    Args:
        say: callback for progress messages.
        relay: the relay through which all clients reach the segments; none if left out.
    """
    with ExitStack() as stack:
        begun = time.monotonic()
        port = None if relay is None else relay.port
        store = Standalone(heap=_HEAP, lasting=True, published_port=port)
        if relay is not None:
            relay.begin(store.segment_store)
        server = stack.enter_context(store)
        java = stack.enter_context(ForeignClient(server.controller_uri, lasting=True))
        say(f"a new store serves after {time.monotonic() - begun:.1f} s")
        yield Place(server, java, Path(stack.enter_context(TemporaryDirectory())))


def measure_small(place: Place, say: Say) -> list[Measurement]:
    """Copy a scope of 500 small streams several times. Raise BenchError if one is not copied."""
    source = _filled(place, SMALL, say)
    seconds = []
    for number in range(RUNS + 1):
        copy = _copy(place, source)
        seconds.append(_run(copy, len(SMALL)))
        say(f"{number} of {RUNS}: {len(SMALL)} streams in {seconds[-1]:.1f} s")
    return [Measurement(RUN_KEY, tuple(seconds[1:]))]  # the first run was the warm-up


def measure_against_copies(place: Place, say: Say) -> list[Measurement]:
    """Copy the scope of the tests as a whole, and stream by stream with StreamCopies.

    Raises:
        BenchError: a stream is not copied.
    """
    sketches = (*MIXED, *SMALL[: 30 - len(MIXED)])
    names = [sketch.name for sketch in sketches]
    source = _filled(place, sketches, say)
    whole, single = [], []
    for number in range(RUNS + 1):
        whole.append(_run(_copy(place, source), len(names)))
        target = _name("copies")
        place.java.create_scope(target)
        single.append(_run(Copies(place, source, target, names), len(names)))
        say(
            f"{number} of {RUNS}: one ScopeCopy {whole[-1]:.1f} s, "
            f"{len(names)} StreamCopies {single[-1]:.1f} s"
        )
    counts = {
        "one ScopeCopy, seconds": median(whole[1:]),
        f"{len(names)} StreamCopies, seconds in all": median(single[1:]),
    }
    ours, base = tuple(whole[1:]), tuple(single[1:])
    return [Measurement(COPIES_KEY, ours, Goal("<", 1), unit="", counts=counts, base=base)]


def measure_plan(place: Place, say: Say) -> list[Measurement]:
    """Plan a copy of 5,000 empty streams. Raise BenchError if the plan lacks some."""
    source = _name("wide")
    begun = time.monotonic()
    place.java.create_many(source, "stream-", MANY, threads=AT_ONCE)
    say(f"made {MANY:,} streams in {time.monotonic() - begun:.0f} s")
    seconds, peaks = [], []
    for number in range(RUNS + 1):
        planned = plan(_copy(place, source), seconds=_SECONDS)
        if planned.code != 0 or len(planned.found["streams"]) != MANY:
            raise BenchError(f"not all streams were planned: {planned.found}")
        say(f"{number} of {RUNS}: {planned.seconds:.1f} s, {planned.peak / 1e6:.0f} MB at most")
        seconds.append(planned.seconds)
        peaks.append(planned.peak / 1e6)
    counts = {"MB of memory at most": median(peaks[1:])}
    return [Measurement(PLAN_KEY, tuple(seconds[1:]), Goal("<", 60), counts=counts)]


def _filled(place: Place, sketches: Sequence[Sketch], say: Say) -> str:
    scope = _name("source")
    begun = time.monotonic()
    fill(place.java, scope, sketches)
    say(f"wrote {len(sketches)} streams in {time.monotonic() - begun:.1f} s")
    return scope


def _copy(place: Place, source: str) -> ScopeCopy:
    uri = place.store.controller_uri
    return ScopeCopy(place.folder, uri, source, _name("target"), spec=dict(_MAKE))


def _run(copies: Filed, streams: int) -> float:
    """Copy this number of streams and return the seconds of the run."""
    begun = time.monotonic()
    ended = copies.run("run", "-o", "json", seconds=_SECONDS)
    seconds = time.monotonic() - begun
    if ended.code != 0 or _copied(ended) != streams:
        raise BenchError(f"not all streams were copied: {ended.err[-2000:]}")
    return seconds


def _copied(ended: Finished) -> int:
    states = [one["state"] for copy in ended.json for one in copy.get("streams", [])]
    return (states or [copy.get("outcome") for copy in ended.json]).count("Copied")


def _name(what: str) -> str:
    return f"{what}-{uuid4().hex[:8]}"
