"""Two replicas of the operator at a real API server: one works, and the other takes over."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from support.cluster.outside import OUTSIDE, nobody_else
from support.cluster.replicas import (
    LEASE,
    LOST,
    Replicas,
    cut_off,
    frozen,
    killed,
    replicas,
    stopped,
)
from support.tenants.renting import rented
from support.until import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from localcluster import Cluster
    from support.cluster.replicas import Disturbance
    from support.tenants.tenant import Tenant

pytestmark = pytest.mark.timeout(600)
NOTHING = "tcp://127.0.0.1:9"


@pytest.fixture(scope="module")
def tenant(kube: Cluster, definitions: list[str]) -> Iterator[Tenant]:
    """Yield a namespace with a StreamStore that accepts connections and never answers.

    So a replica always has a waiting thread.
    """
    assert definitions
    with (
        nobody_else(kube),
        rented(kube, None, print, f"{OUTSIDE}{uuid4().hex[:8]}") as found,
        socket.create_server(("127.0.0.1", 0), backlog=1000) as silent,
    ):
        uri = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        found.apply(found.store_resource("silent", uri=uri))
        yield found


@pytest.fixture(scope="module")
def pair(
    kube: Cluster, tenant: Tenant, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Replicas]:
    """Yield two replicas."""
    with replicas(kube, tmp_path_factory.mktemp("replicas"), tenant.namespace) as made:
        yield made


def works(tenant: Tenant, name: str) -> None:
    """Wait until a new resource has a status."""
    tenant.apply(tenant.store_resource(name, uri=NOTHING))
    until(f"{name} has a status", lambda: bool(tenant.condition(name, resource="sst")))


@pytest.mark.parametrize("how", [stopped, killed, frozen, cut_off], ids=lambda how: how.__name__)
def test_the_other_replica_takes_over(
    pair: Replicas, tenant: Tenant, how: Disturbance, say: Callable[[str], None]
) -> None:
    """After any fault of the working replica, the other one takes over.

    The first changes nothing.
    """
    seconds = pair.disturb(how)
    say(f"  {how.__name__}: taken over after {seconds:.1f} s")
    works(tenant, f"after-{how.__name__.replace('_', '-')}")
    pair.roles()


def test_an_api_server_that_is_away_changes_no_roles(pair: Replicas, tenant: Tenant) -> None:
    """Without the API server neither replica ends. Later the same one works again."""
    leader, other = pair.roles()
    pids = [one.operator.pid for one in (leader, other)]
    for one in (leader, other):
        one.link.go_away()
    until("its time is over", lambda: not leader.leads)
    tenant.apply(tenant.store_resource("meanwhile", uri=NOTHING))
    for one in (leader, other):
        assert one.operator.probe("livez")[0] == 200
        one.link.come_back()
    until("it goes on", lambda: bool(tenant.condition("meanwhile", resource="sst")))
    assert pair.roles() == (leader, other)
    assert pids == [one.operator.pid for one in (leader, other)]


@pytest.mark.parametrize("what", ["deleted", "nobody's", "another's"])
def test_a_person_who_changes_the_lease_does_no_harm(
    pair: Replicas, tenant: Tenant, what: str
) -> None:
    """After a user's change of the Lease, one replica works, and the Lease has its name."""
    leader, _ = pair.roles()
    if what == "deleted":
        tenant.run("delete", "lease", LEASE)
    else:
        name = "" if what == "nobody's" else "someone"
        tenant.patch("lease", LEASE, {"spec": {"holderIdentity": name}})
    if what == "another's":
        assert leader.operator.ended() == LOST
        leader.operator.start()
    works(tenant, f"after-{what.replace(chr(39), '')}")
    pair.roles()
    holder = ("get", "lease", LEASE, "--output=jsonpath={.spec.holderIdentity}")
    until("a replica has it", lambda: tenant.run(*holder).startswith(socket.gethostname()))
