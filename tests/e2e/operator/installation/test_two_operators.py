"""Two operators for a moment at once, as an upgrade or a lost node can bring about."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

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
    """Each copy has one Job and is whole, with two operators from its first moment to its last."""
    sluice.scale(2)
    try:
        tenant.apply(
            *(
                tenant.copy_resource(name, source.name, f"{scope}/{name}", limits=SLOW)
                for name in NAMES
            )
        )
        for name in NAMES:
            tenant.until_ready(name)
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
