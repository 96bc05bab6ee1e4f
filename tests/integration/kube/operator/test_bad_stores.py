"""Malicious stores, which must not affect the operator's other tenants."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from support.cluster.bad_stores import TEN_GIGABYTES, LyingStore, black_holes, bombs
from support.cluster.operator_process import OperatorProcess
from support.cluster.outside import nobody_else
from support.command.scope_command import peak_memory
from support.search import FAR
from support.tenants.tenant import Tenant
from support.until import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from localcluster import Cluster

_LOOK_SECONDS = 20
_VICTIMS = 5 if FAR == 1 else 10
_DENSE = 3 if FAR == 1 else 20
"""Copies with equal journals, each of which would take gigabytes of memory."""

_MOST_MEMORY = 400_000_000


@pytest.fixture
def tenants(kube: Cluster, outside: str) -> Iterator[list[Tenant]]:
    """Yield three tenants: with silent stores, with lying stores, and with good ones."""
    names = [outside, f"{outside}-liars", f"{outside}-others"]
    for name in names[1:]:
        kube.kubectl("create", "namespace", name)
    yield [Tenant(kube, name, None, print) for name in names]
    for name in names[1:]:
        kube.kubectl("delete", "namespace", name, "--wait=false")


def _is_looked_at(body: dict[str, Any]) -> bool:
    return int(body.get("status", {}).get("observedGeneration", 0)) > 0


def _copy(name: str, store: str) -> dict[str, Any]:
    sides = {
        side: {"storeRef": {"name": store}, "scope": "shop", "stream": stream}
        for side, stream in (("source", "orders"), ("target", "saved"))
    }
    return _resource("StreamCopy", name, sides)


def _resource(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "sluice.dev/v1alpha1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    }


@pytest.mark.usefixtures("definitions")
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "count", [8, pytest.param(500, marks=pytest.mark.exhaustive)], ids=lambda count: f"{count}"
)
def test_bad_stores_keep_nobody_else_waiting(
    kube: Cluster,
    tenants: list[Tenant],
    tmp_path: Path,
    say: Callable[[str], None],
    count: int,
) -> None:
    """Silent stores, endless listings, slow bytes and huge journals delay no other tenant.

    Each question to them ends with a reason. Meanwhile the operator looks at other resources, stays
    alive and needs little memory.
    """
    swallowed, lied_to, others = tenants
    with ExitStack() as stack:
        stack.enter_context(nobody_else(kube))
        holes = stack.enter_context(black_holes(count))
        endless = stack.enter_context(LyingStore(length=0).running())
        slow = stack.enter_context(LyingStore(length=1 << 20, trickles=True).running())
        huge = stack.enter_context(LyingStore(length=TEN_GIGABYTES).running())
        dense = stack.enter_context(LyingStore(holds=bombs()).running())
        operator = stack.enter_context(
            OperatorProcess(
                tmp_path,
                kube.kubeconfig,
                swallowed.namespace,
                others=[lied_to.namespace, others.namespace],
                more={"lookSeconds": _LOOK_SECONDS},
            )
        )
        pid = operator.pid
        lied_to.apply(
            *(
                lied_to.store_resource(name, uri=uri)
                for name, uri in (
                    ("endless", endless),
                    ("slow", slow),
                    ("huge", huge),
                    ("dense", dense),
                )
            ),
            *(_copy(f"dense-{number}", "dense") for number in range(_DENSE)),
            _copy("slow", "slow"),
            _copy("huge", "huge"),
            _resource(
                "ScopeCopy",
                "endless",
                {
                    "source": {"storeRef": {"name": "endless"}, "scope": "shop"},
                    "target": {"storeRef": {"name": "endless"}, "scope": "saved"},
                },
            ),
        )
        swallowed.apply(
            *(
                swallowed.store_resource(f"hole-{number}", uri=uri)
                for number, uri in enumerate(holes)
            )
        )
        waits = []
        for number in range(_VICTIMS):
            others.apply(others.store_resource(f"store-{number}", uri="tcp://127.0.0.1:9"))
            begun = time.monotonic()
            until(
                "another namespace's store was looked at",
                lambda name=f"store-{number}": _is_looked_at(others.get("sst", name) or {}),
            )
            waits.append(time.monotonic() - begun)
            if number == 0:
                looked = sum(map(_is_looked_at, swallowed.get_all("sst")))
        assert looked < count / 2, "others waited until the black holes were looked at"
        for name, kind, reasons in (
            ("slow", "scopy", {"StoreTimeout"}),
            ("huge", "scopy", {"JournalDamaged"}),
            *(
                (f"dense-{number}", "scopy", {"JournalDamaged", "StoreTimeout"})
                for number in range(_DENSE)
            ),
            ("endless", "sccp", {"StoreTimeout", "ProtocolError"}),
        ):
            until(
                f"it is told of the store {name}",
                lambda name=name, kind=kind, reasons=reasons: (
                    lied_to.condition(name, resource=kind).get("reason") in reasons
                ),
            )
        until(
            "each black hole was looked at",
            lambda: all(map(_is_looked_at, swallowed.get_all("sst"))),
            seconds=600,
        )
        assert operator.is_running
        assert operator.pid == pid
        assert operator.probe("livez") == (200, "ok\n")
        memory = peak_memory(pid)
        waits.sort()
        say(
            f"{count} black holes: others waited {waits[len(waits) // 2]:.2f} s, at most"
            f" {waits[-1]:.2f} s; the operator had {memory >> 20} MiB at most"
        )
        assert memory < _MOST_MEMORY
