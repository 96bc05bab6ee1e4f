"""Faults of the operator's links to the API server and to a controller.

For each fault, an operator of its own plans a copy, follows it and ends it. The fault comes twice,
each time before the operator's calls. Drivers have links without faults. The test stands in for the
kubelet: it restarts an operator that fails three liveness probes.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final

import pytest

from support.cluster.kubelet import PROFILES
from support.cluster.operator_process import OperatorProcess
from support.cluster.outside import OUTSIDE, nobody_else
from support.kube.link import api_server, lead
from support.tenants.desk import Desk
from support.tenants.renting import rented
from support.wire.faults import FAULTS, Fault
from support.wire.faulty_wire import Client, FaultyWire
from support.wire.wire_table import WireTable
from support.witness.foreign_witness import assert_equal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from localcluster import Cluster
    from localstore import ForeignClient, Standalone
    from support.tenants.tenant import Tenant

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(1200)]

EVENTS, KEYS = 3000, 8
_PROBES: Final = 3
_PERIOD: Final = 10.0
"""The chart's values: failed liveness probes until a kubelet restarts the operator, and seconds
between two probes."""

MOST_RESTARTS: Final = 2


class Tended:
    """An operator with faults on a link, which the test restarts as a kubelet does.

    Args:
        operator: the running process.
        wire: the proxy of the link.
        fault: the fault.

    Attributes:
        restarts: number of restarts.
    """

    def __init__(self, operator: OperatorProcess, wire: FaultyWire, fault: Fault) -> None:
        self._operator, self._wire, self._fault = operator, wire, fault
        self.restarts = 0
        self._over = threading.Event()
        self._watch()
        self._thread = threading.Thread(target=self._tend, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop restarting the operator."""
        self._over.set()
        self._thread.join()

    def happen(self) -> None:
        """Begin the fault."""
        self._fault.happen(self._wire, self._client)

    def _watch(self) -> None:
        self._client = Client(self._operator.pid, self._fault.delay, self._fault.loss)
        self._wire.watch(self._client)

    def _tend(self) -> None:
        failed = 0
        while not self._over.wait(_PERIOD):
            failed = 0 if self._operator.probe("livez")[0] == 200 else failed + 1
            if failed < _PROBES:
                continue
            before, failed = self._client, 0
            self._operator.kill()
            self._operator.begin()
            self._watch()
            self._client.stalled, self._client.dark = before.stalled, before.dark
            self.restarts += 1


@contextmanager
def tended(
    kube: Cluster, folder: Path, standalone: Standalone, link: str, fault: Fault
) -> Iterator[tuple[Tenant, Tended]]:
    """Yield a namespace, and the operator that serves it through a link with a fault."""
    name = f"{OUTSIDE}{folder.name}"
    with ExitStack() as stack:
        api = stack.enter_context(FaultyWire(api_server(kube.kubeconfig)))
        controller = stack.enter_context(FaultyWire(standalone.controller))
        lead(kube.kubeconfig, folder / "kubeconfig", api.port)
        operator = stack.enter_context(
            OperatorProcess(folder, folder / "kubeconfig", name, PROFILES)
        )
        wire = api if link == "API server" else controller
        found = Tended(operator, wire, fault)
        stack.callback(found.close)
        tenant = stack.enter_context(rented(kube, None, print, name))
        tenant.apply(tenant.store_resource(uri=f"tcp://127.0.0.1:{controller.port}"))
        yield tenant, found


def follow(
    tenant: Tenant, tended: Tended, folder: Path, foreign: ForeignClient, scope: str
) -> tuple[float, float]:
    """Let the operator plan a copy and end it, with a fault at each of the two.

    Returns:
        The seconds from the first fault to a Job, and from the second fault to the copy's end.
    """
    desk = Desk(tenant, folder)
    foreign.create(scope, "source", segments=2)
    foreign.write(scope, "source", events=EVENTS, size=1000, keys=KEYS)
    desk.until_reason("sst", "store", "Reachable")
    begun = time.monotonic()
    tended.happen()
    source, target = f"{scope}/source", f"{scope}/target"
    tenant.apply(tenant.copy_resource("live", source, target, mode="Continuous"))
    with desk.driver() as driver:
        planned = time.monotonic() - begun
        tenant.until_reason("live", "Following")
        foreign.write(scope, "source", events=EVENTS, size=1000, keys=KEYS, first=EVENTS)
        begun = time.monotonic()
        tended.happen()
        tenant.patch("scopy", "live", {"spec": {"cutover": "SealAndDrain"}})
        assert driver.finish() == 0
    status = tenant.until_ready("live")
    ended = time.monotonic() - begun
    assert status["attempts"] == 1
    return planned, ended


@pytest.mark.parametrize("link", ["API server", "controller"])
def test_the_operator_bears_every_fault_of_its_links(
    kube: Cluster,
    definitions: list[str],
    standalone: Standalone,
    foreign: ForeignClient,
    tmp_path: Path,
    say: Callable[[str], None],
    link: str,
) -> None:
    """Under each fault, one attempt copies equal bytes with few restarts of the operator."""
    assert definitions
    table = WireTable(
        f"operator-{link.replace(' ', '-')}",
        "seconds from a fault to a Job, from another one to the end, starts anew",
    )

    def cell(number: int, fault: Fault) -> str:
        folder = tmp_path / f"{link.partition(' ')[0].lower()}-{number}-{tmp_path.stat().st_ino}"
        folder.mkdir()
        scope = folder.name
        foreign.create_scope(scope)
        with tended(kube, folder, standalone, link, fault) as (tenant, found):
            planned, ended = follow(tenant, found, folder, foreign, scope)
            assert found.restarts <= MOST_RESTARTS
            assert_equal(standalone.segment_store, foreign, (scope, "source"), (scope, "target"))
            assert foreign.read(scope, "target").events == 2 * EVENTS
            return f"{planned:.0f} s, {ended:.0f} s, {found.restarts}"

    with nobody_else(kube), ThreadPoolExecutor(len(FAULTS)) as pool:
        cells = {fault: pool.submit(cell, number, fault) for number, fault in enumerate(FAULTS)}
        for fault, done in cells.items():
            table.note(f"operator - {link}", fault.name, done.result())
    say(table.written())
