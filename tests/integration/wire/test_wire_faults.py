"""Faults of every link between a driver or a follower and two stores.

Many processes share the proxies, and each has a fault of its own. So a whole table takes little
longer than its longest fault. The table has the times of standstill, but no test asserts them.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from itertools import cycle, product
from typing import TYPE_CHECKING, Final

import pytest

from localstore import ForeignClient, Standalone
from support.command.follow_command import LIVE, Process
from support.command.sluice_command import Filed
from support.until import until
from support.wire.faults import FAULTS, SHORT, Fault
from support.wire.faulty_wire import Client, FaultyWire
from support.wire.wire_table import WireTable
from support.witness.foreign_witness import assert_alike, hashes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(900), pytest.mark.patient]

EVENTS: Final = 4000
"""Events of a source that is copied: 4 MB."""

RATE: Final = 400_000
"""Bytes per second of a copy, so that there is time to disturb it."""

LIVE_RATE: Final = 50
"""Events of 1 kB that come each second to a source that is followed."""

MOST_RETRIES: Final = 20
MOST_CONNECTIONS: Final = 100

MANIFEST: Final = """\
apiVersion: sluice.dev/v1alpha1
kind: StreamStore
metadata: {{name: near}}
spec: {{pravega: {{controllerURI: "{near}"}}}}
---
apiVersion: sluice.dev/v1alpha1
kind: StreamStore
metadata: {{name: far}}
spec: {{pravega: {{controllerURI: "{far}"}}}}
---
apiVersion: sluice.dev/v1alpha1
kind: StreamCopy
metadata: {{name: {name}}}
spec:
  source: {{storeRef: {{name: {source}}}, scope: {scope}, stream: {stream}}}
  target: {{storeRef: {{name: {target}}}, scope: {scope}, stream: {name}}}
  mode: {mode}
  limits: {limits}
"""


LINKS: Final = ("controller", "segment store")


@dataclass(frozen=True)
class Place:
    """Two stores: `near` without proxies, and `far` behind them."""

    near: Standalone
    far: Standalone
    wires: dict[str, FaultyWire]
    clients: dict[str, ForeignClient]

    @property
    def far_uri(self) -> str:
        """The address of the store behind the proxies."""
        return f"tcp://127.0.0.1:{self.wires['controller'].port}"

    def server(self, name: str) -> tuple[str, int]:
        """Return the segment store of `near` or `far`, without proxies."""
        return (self.near if name == "near" else self.far).segment_store


@dataclass(eq=False)
class Cell(Filed):
    """A process, one of whose links has a fault."""

    folder: Path
    place: Place
    scope: str
    source: str
    link: str
    fault: Fault
    follows: bool
    environment: dict[str, str]
    log_level = "info"
    process: Process = field(init=False)
    client: Client = field(init=False)
    meter: Client = field(init=False)
    done: bool = field(default=False, init=False)

    @property
    def target(self) -> str:
        """The store that the process writes to."""
        return "far" if self.source == "near" else "near"

    @property
    def row(self) -> str:
        """The cell's name in the table."""
        side = "source" if self.source == "far" else "target"
        return f"{'follower' if self.follows else 'driver'} - {side}'s {self.link}"

    @property
    def name(self) -> str:
        """The name of the target's stream."""
        words = f"{self.row} {self.fault.name}"
        return "".join(one if one.isalnum() else "-" for one in words.replace("%", "of100"))

    @property
    def stream(self) -> str:
        """The name of the source's stream."""
        return "followed" if self.follows else "copied"

    @property
    def file(self) -> Path:
        """The file. Each access writes it anew."""
        path = self.folder / f"{self.name}.yaml"
        path.write_text(
            MANIFEST.format(
                near=self.place.near.controller_uri,
                far=self.place.far_uri,
                name=self.name,
                source=self.source,
                target=self.target,
                scope=self.scope,
                stream=self.stream,
                mode="Continuous" if self.follows else "Snapshot",
                limits="{}" if self.follows else f"{{bytesPerSecond: {RATE}}}",
            )
        )
        return path

    def begin(self) -> None:
        """Start the process, with its lasting faults."""
        process = self.start("run")
        wires = self.place.wires
        self.client = Client(process.pid, self.fault.delay, self.fault.loss)
        wires[self.link].watch(self.client)
        self.meter = self.client
        if self.link != "segment store":
            self.meter = Client(process.pid)
            wires["segment store"].watch(self.meter)
        self.process = Process(process)

    @property
    def is_midway(self) -> bool:
        """Return whether the process is at work, and so can be disturbed, or has ended."""
        begun = LIVE in self.process.said if self.follows else self.meter.payload > EVENTS * 250
        return begun or not self.process.runs

    def disturb(self) -> None:
        """Begin the sudden part of the cell's fault."""
        assert self.process.runs, self.process.said
        self.fault.happen(self.place.wires[self.link], self.client)

    def assert_exact(self) -> None:
        """Check that the process succeeded after few retries, and that the streams are equal."""
        ended = self.process.ended()
        assert ended.code == 0, f"{self.name}: {ended.err}"
        assert self.retries <= MOST_RETRIES, ended.err
        assert self.client.connections <= MOST_CONNECTIONS
        place = self.place
        before, after = (
            hashes(place.server(store), place.clients[store], (self.scope, stream))
            for store, stream in ((self.source, self.stream), (self.target, self.name))
        )
        assert_alike(before, after)

    @property
    def retries(self) -> int:
        """The number of retried steps."""
        return self.process.said.count("trying again in")

    @property
    def text(self) -> str:
        """The longest hole, retries and connections, for the table."""
        return f"{self.meter.hole:.1f} s, {self.retries} / {self.client.connections}"


@pytest.fixture(scope="module")
def place(
    standalone: Standalone,
    foreign: ForeignClient,
    announce: Callable[[str], AbstractContextManager[None]],
) -> Iterator[Place]:
    """Yield both stores."""
    with FaultyWire() as controller, FaultyWire() as segments:
        far = Standalone(heap="2g", published_port=segments.port)
        controller.upstream, segments.upstream = far.controller, far.segment_store
        with announce("Pravega standalone behind proxies"):
            far.start()
        wires = {"controller": controller, "segment store": segments}
        try:
            with ForeignClient(far.controller_uri) as beyond:
                yield Place(standalone, far, wires, {"near": foreign, "far": beyond})
        finally:
            far.stop()


@pytest.fixture(scope="module")
def table() -> WireTable:
    """Return the table of all tests here."""
    return WireTable("drivers", "longest hole, retries / connections")


def run(cells: list[Cell], table: WireTable) -> None:
    """Run all cells of one direction side by side, to their exact ends."""
    place, scope, source = cells[0].place, cells[0].scope, cells[0].source
    foreign = place.clients[source]
    for one in place.clients.values():
        one.create_scope(scope)
    for stream in ("copied", "followed"):
        foreign.create(scope, stream, segments=2)
        foreign.write(scope, stream, events=EVENTS, size=1000, keys=8)
    stop = foreign.start_writer(
        scope, "followed", rate=LIVE_RATE, size=1000, keys=8, first=EVENTS, seed=1
    )
    try:
        for cell in cells:
            cell.begin()
        _disturb([cell for cell in cells if cell.fault.sudden is not None])
        for cell in cells:
            if not cell.follows:
                cell.process.ended()
        for cell in cells:
            if cell.follows:
                _until_undisturbed(cell)
        stop()
        assert foreign.seal(scope, "followed")
        for cell in cells:
            cell.assert_exact()
            table.note(cell.row, cell.fault.name, cell.text)
    finally:
        for cell in cells:
            cell.process.close()


def _disturb(waiting: list[Cell]) -> None:
    """Begin each fault as soon as its process is at work."""

    def ready() -> list[Cell]:
        return [one for one in waiting if one.is_midway]

    while waiting:
        for cell in until("a process is midway", ready):
            cell.disturb()
            waiting.remove(cell)


def _until_undisturbed(cell: Cell) -> None:
    """Wait until a follower gets events again after its fault."""
    over = max(cell.client.stalled, cell.client.dark)
    until(f"the fault of {cell.name} is over", lambda: time.monotonic() > over)
    before = cell.meter.payload
    wanted = before + 20 * 1000
    until(f"{cell.name} goes on", lambda: cell.meter.payload > wanted or not cell.process.runs)
    assert cell.process.runs, cell.process.said


def test_a_copy_is_exact_whatever_its_links_do(
    place: Place, table: WireTable, tmp_path: Path, say: Callable[[str], None]
) -> None:
    """Copies are exact under short faults of any link to the target's store."""
    quick = {"SLUICE_STORE_TIMEOUT": "4"}
    cells = [
        Cell(tmp_path, place, "short", "near", link, fault, follows, quick)
        for fault, link in zip(SHORT, cycle(LINKS), strict=False)
        for follows in (False, True)
    ]
    run(cells, table)
    say(table.written())


@pytest.mark.parametrize("source", ["near", "far"])
def test_every_link_bears_every_fault(
    place: Place, table: WireTable, tmp_path: Path, say: Callable[[str], None], source: str
) -> None:
    """Every link survives every fault, with the usual deadlines."""
    cells = [
        Cell(tmp_path, place, f"from-{source}", source, link, fault, follows, {})
        for fault, link, follows in product(FAULTS, LINKS, (False, True))
    ]
    run(cells, table)
    say(table.written())
