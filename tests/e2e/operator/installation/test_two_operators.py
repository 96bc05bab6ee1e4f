"""Two replicas of the operator: one works, and the other takes over when that is killed."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from support.until import until

if TYPE_CHECKING:
    from collections.abc import Callable

    from e2e.operator.conftest import Operator, Source
    from support.cluster.tenant import Tenant

NAMES = ("one", "two", "three")
SLOW = {"bytesPerSecond": "3500Ki"}


@pytest.mark.alone
def test_two_operators_do_nothing_twice(
    tenant: Tenant, source: Source, scope: str, sluice: Operator, whole: Callable[..., None]
) -> None:
    """Each copy has one Job and is whole, though the pod that works is killed midway."""
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
