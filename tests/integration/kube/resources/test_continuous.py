"""A copy that follows its source, by an operator at a real API server and a real store.

Kubernetes' own Job controller replaces the follower's pods. These find no node, so the test runs
them (`support.cluster.kubelet`), and kills and stops their processes.
"""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

import pytest

import segment_hash
from sluice.kube.api.names import UID_LABEL
from sluice.stores.pravega.groups import cuts
from support.gitops.kstatus import kstatus
from support.until import PATIENTLY

if TYPE_CHECKING:
    from localstore import ForeignClient, Standalone
    from support.cluster.local_operator import LocalOperator
    from support.tenants.desk import Desk
    from support.tenants.tenant import Object, Tenant

pytestmark = pytest.mark.timeout(600)

EVENTS, KEYS = 500, 8


@pytest.fixture
def source(foreign: ForeignClient, scope: str) -> str:
    """Return the name of a stream with events."""
    foreign.create(scope, "orders", segments=2)
    foreign.write(scope, "orders", events=EVENTS, keys=KEYS)
    return f"{scope}/orders"


def follow(tenant: Tenant, name: str) -> Object:
    """Return the part of a copy's status about following."""
    found: Object = tenant.status(name).get("follow") or {}
    return found


def jobs(tenant: Tenant) -> list[Object]:
    """Return the Jobs of drivers."""
    return tenant.get_all("jobs", labelSelector="app.kubernetes.io/component=driver")


def until_followed(tenant: Tenant, name: str, size: int) -> None:
    """Wait until the status says that the target has all bytes of the source."""
    tenant.until(
        f"{name} has {size} bytes",
        lambda: (found := follow(tenant, name)).get("bytes") == size and found["lagBytes"] == 0,
    )


def reports(store: Standalone, stream: str, segments: int = 2) -> list[Any]:
    """Return the stand-alone script's report on each segment of a stream, without its name."""
    scope, _, short = stream.partition("/")
    found = [
        segment_hash.segment_report(*store.segment_store, scope, short, number)
        for number in range(segments)
    ]
    return [{key: one[key] for key in ("length", "sha256")} for one in found]


def length(store: Standalone, stream: str) -> int:
    """Return the number of bytes in a stream, by the stand-alone script."""
    return sum(int(one["length"]) for one in reports(store, stream))


def test_a_copy_follows_its_source_through_a_killed_pod_and_a_cutover_without_an_operator(
    desk: Desk,
    local_operator: LocalOperator,
    foreign: ForeignClient,
    scope: str,
    source: str,
    standalone: Standalone,
) -> None:
    """Kubernetes replaces a killed pod, and the cutover needs no operator."""
    tenant, operator = desk.tenant, local_operator.operator
    tenant.apply(
        tenant.copy_resource(
            "live", source, f"{scope}/copy", mode="Continuous", lagObjectiveSeconds=60
        )
    )
    with desk.driver() as first:
        tenant.until_reason("live", "Following")
        (job,) = jobs(tenant)
        assert job["spec"]["backoffLimit"] == 6
        (container,) = job["spec"]["template"]["spec"]["containers"]
        assert container["resources"]["requests"] == {"cpu": "50m", "memory": "128Mi"}
        tenant.until(
            "it is ready and verified",
            lambda: (
                {c["type"]: c["status"] for c in tenant.status("live")["conditions"]}
                == {"Ready": "True", "Verified": "True"}
            ),
        )
        body = tenant.get("scopy", "live")
        assert body is not None
        assert kstatus([body]) == {"StreamCopy/live": "Current"}
        row = tenant.run("get", "scopy", "live").splitlines()[-1]
        assert "True" in row
        assert "lag 0 B" in row
        foreign.write(scope, "orders", events=EVENTS, keys=KEYS, first=EVENTS)
        first.process.kill()
        first.finish()
    with desk.driver() as second:
        until_followed(tenant, "live", length(standalone, source))
        assert follow(tenant, "live")["restarts"] == 1
        assert len(jobs(tenant)) == 1
        assert tenant.status("live")["attempts"] == 1
        os.kill(second.process.pid, signal.SIGSTOP)
        foreign.write(scope, "orders", events=EVENTS, keys=KEYS, first=2 * EVENTS)
        tenant.patch("scopy", "live", {"spec": {"cutover": "SealAndDrain"}})
        tenant.until_reason("live", "Draining")
        tenant.until("the wish is written", lambda: "cutover=SealAndDrain" in operator.log())
        operator.kill()
        os.kill(second.process.pid, signal.SIGCONT)
        assert second.finish() == 0
    assert reports(standalone, source) == reports(standalone, f"{scope}/copy")
    assert tenant.reason("live") == "Draining"
    operator.start()
    status = tenant.until_ready("live")
    assert tenant.reason("live") == "CutOver"
    assert status["cutover"]["state"] == "Done"
    texts = (status["cutover"]["sourceCut"], status["cutover"]["targetCut"])
    (of_source, ends), (of_target, same) = map(cuts.read, texts)
    assert (str(of_source), str(of_target)) == (source, f"{scope}/copy")
    assert sum(ends.values()) == length(standalone, source)
    assert same == ends
    assert status["verification"]["events"] == 3 * EVENTS
    assert foreign.read(scope, "copy").events == 3 * EVENTS
    tenant.until_tidied("live")


@pytest.mark.exhaustive
def test_a_driver_takes_the_place_of_a_follower_that_stays_far_behind(
    desk: Desk, foreign: ForeignClient, scope: str, source: str, standalone: Standalone
) -> None:
    """A driver stages a large backlog and ends. Then a follower goes on, as the history says."""
    tenant = desk.tenant
    tenant.apply(tenant.copy_resource("late", source, f"{scope}/late", mode="Continuous"))

    def reasons() -> list[str | None]:
        return [one.get("reason") for one in tenant.status("late").get("history", ())]

    with desk.driver() as first:
        tenant.until_reason("late", "Following")
        os.kill(first.process.pid, signal.SIGSTOP)
        foreign.write(scope, "orders", events=60_000, keys=KEYS, first=EVENTS)
        tenant.until("the follower is replaced", lambda: "FarBehind" in reasons())
    with desk.driver() as second:
        pods = [job["spec"]["template"]["spec"] for job in jobs(tenant)]  # a pod may still end
        assert any("--until-live" in pod["containers"][0]["args"] for pod in pods)
        assert second.finish() == 0
    with desk.driver():
        until_followed(tenant, "late", length(standalone, source))
        assert reasons()[:2] == ["FarBehind", "CameLive"]
        assert tenant.status("late")["failures"] == 0
    assert reports(standalone, source) == reports(standalone, f"{scope}/late")


@pytest.mark.exhaustive
def test_a_copy_pauses_goes_on_and_leaves_a_stream_when_it_is_deleted(
    desk: Desk, foreign: ForeignClient, scope: str, source: str, standalone: Standalone
) -> None:
    """A deleted copy leaves only its target in the store, with all followed bytes."""
    tenant = desk.tenant
    tenant.apply(tenant.copy_resource("paused", source, f"{scope}/paused", mode="Continuous"))
    with desk.driver():
        tenant.until_reason("paused", "Following")
        tenant.patch("scopy", "paused", {"spec": {"suspend": True}})
        tenant.until_reason("paused", "Suspended")
    uid = (tenant.get("scopy", "paused") or {})["metadata"]["uid"]
    assert tenant.get_all("pods", labelSelector=f"{UID_LABEL}={uid}") == []
    foreign.write(scope, "orders", events=EVENTS, keys=KEYS, first=EVENTS)
    tenant.patch("scopy", "paused", {"spec": {"suspend": False}})
    with desk.driver():
        until_followed(tenant, "paused", length(standalone, source))
        copy_id = tenant.status("paused")["copyID"]
        tenant.run("delete", "scopy", "paused", PATIENTLY)
    assert reports(standalone, source) == reports(standalone, f"{scope}/paused")
    assert foreign.read(scope, "paused").events == 2 * EVENTS
    assert copy_id


@pytest.mark.exhaustive
def test_reader_groups_go_on_in_the_target_once_their_readers_are_closed(
    desk: Desk, foreign: ForeignClient, scope: str, source: str
) -> None:
    """The copy waits for a group with readers, by name. No group gets a guessed position."""
    tenant = desk.tenant
    for group in ("closed", "open"):
        foreign.create_group(scope, group, "orders")
        read = foreign.read_group(scope, group, events=EVENTS // 2, stay=group == "open")
        assert read.events == EVENTS // 2
    groups = [{"name": "closed", "as": "closed-2"}, {"name": "open", "as": "open-2"}]
    spec = {"mode": "Continuous", "readerGroups": groups}
    tenant.apply(tenant.copy_resource("read", source, f"{scope}/read", **spec))
    with desk.driver() as driver:
        tenant.until_reason("read", "Following")
        tenant.patch("scopy", "read", {"spec": {"cutover": "Drain"}})
        assert driver.finish() == 0
    tenant.until_reason("read", "WaitingForReaders")
    tenant.until("the closed group is made", lambda: made(tenant)["closed"] == "Made")
    assert made(tenant) == {"closed": "Made", "open": "Waiting"}
    message = tenant.condition("read")["message"]
    assert "open" in message
    assert "online" in message
    foreign.leave_group("open")
    tenant.until_reason("read", "CutOver")
    assert made(tenant) == {"closed": "Made", "open": "Made"}
    for group in ("closed-2", "open-2"):
        rest = foreign.read_group(scope, group, quiet_ms=5000)
        assert rest.events == EVENTS - EVENTS // 2


def made(tenant: Tenant) -> dict[str, str]:
    """Return the states of the reader groups of the copy."""
    found = tenant.status("read").get("readerGroups") or []
    return {one["name"]: one["state"] for one in found}
