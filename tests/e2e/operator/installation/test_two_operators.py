"""Two replicas of the operator: one works, and the other takes over after a kill."""

from __future__ import annotations

import threading
from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING

import pytest

from support.until import until

if TYPE_CHECKING:
    from collections.abc import Callable

    from e2e.operator.conftest import Operator, Source
    from support.tenants.tenant import Tenant

NAMES = ("one", "two", "three")
SLOW = {"bytesPerSecond": "3500Ki"}


@pytest.mark.exhaustive
@pytest.mark.alone
def test_two_operators_do_nothing_twice(
    tenant: Tenant, source: Source, scope: str, sluice: Operator, whole: Callable[..., None]
) -> None:
    """Each copy has one Job and is whole, though the working pod is killed midway."""
    sluice.scale(2)
    try:
        leader = until("a replica works", lambda: sluice.leader)
        tenant.apply(
            *(
                tenant.copy_resource(name, source.name, f"{scope}/{name}", limits=SLOW)
                for name in NAMES
            )
        )
        for name in NAMES:
            tenant.until_reason(name, "Copying")
        sluice.run("delete", "pod", leader, "--force", "--grace-period=0")
        for name in NAMES:
            tenant.until_ready(name)
        assert sluice.leader not in {"", leader}
        tenant.run("delete", "scopy", "three")
    finally:
        sluice.scale(1)
    for name in NAMES:
        whole(f"{scope}/{name}", source)
    for name in NAMES[:2]:
        assert tenant.status(name)["attempts"] == 1
        said = Counter(reason for reason, _ in tenant.events(name))
        assert said["Copied"] == said["Starting"] == 1
    assert len(tenant.get_all("jobs")) == 2


@pytest.mark.alone
@pytest.mark.exhaustive
def test_an_upgrade_under_load_makes_no_gap(
    tenant: Tenant,
    scope: str,
    sluice: Operator,
    release: Callable[..., None],
    say: Callable[[str], None],
) -> None:
    """While Helm replaces both replicas, new EphemeralStreams still become ready."""
    release(operator={"resyncSeconds": 5, "replicas": 2})
    over, names = threading.Event(), list[str]()

    def ask() -> None:
        while not over.wait(0.5):
            name = f"load-{len(names)}"
            spec = {"storeRef": {"name": "store"}, "scope": scope, "stream": name}
            tenant.apply(
                {
                    "apiVersion": "sluice.dev/v1alpha1",
                    "kind": "EphemeralStream",
                    "metadata": {"name": name},
                    "spec": spec,
                }
            )
            names.append(name)

    asking = threading.Thread(target=ask)
    try:
        leader = until("a replica works", lambda: sluice.leader)
        asking.start()
        until("some are there", lambda: len(names) > 5)
        release(operator={"resyncSeconds": 6, "replicas": 2})
        until("another pod works", lambda: sluice.leader not in {"", leader})
        sluice.ready()
        before = len(names)
        until("some more are there", lambda: len(names) > before + 5)
    finally:
        over.set()
        asking.join()
        release()
        sluice.ready()
    waits = []
    for name in names:
        ready = tenant.until(
            f"{name} is ready",
            lambda name=name: (
                (one := tenant.condition(name, resource="eps")).get("status") == "True" and one
            ),
        )
        body = tenant.get("eps", name)
        assert body is not None
        made = datetime.fromisoformat(body["metadata"]["creationTimestamp"])
        waits.append((datetime.fromisoformat(ready["lastTransitionTime"]) - made).total_seconds())
    say(f"  {len(names)} streams during an upgrade: ready within {max(waits):.0f} s")
