"""The effects of actions, at an API server in memory."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from sluice.api.status.copy_status import StreamCopyStatus
from sluice.core.reconcile.copies.actions import DeleteJob, DropControls, Expire, WritePositions
from sluice.kube.api.kinds import CONFIG_MAP, JOB, STREAM_COPY
from sluice.kube.api.names import ATTEMPT_LABEL, Child, child_labels, controls_name, run_name
from sluice.kube.copies.performer import Performer
from sluice.kube.jobs import manifests
from sluice.kube.loop.settings import OperatorSettings
from support.kube.api_server import ApiServer
from support.reconcile.copies import MAPPED, UID, copy

if TYPE_CHECKING:
    from sluice.core.reconcile.copies.actions import Action
    from sluice.kube.copies.situation import Situation

UNUSED = cast("Any", None)


def perform(server: ApiServer, action: Action) -> None:
    """Perform one action for the copy."""
    child = Child(kind=STREAM_COPY, namespace="default", name="orders", uid=UID)
    situation = SimpleNamespace(
        namespace="default", seen=copy(), kind=STREAM_COPY, child=child, places=("default",)
    )
    performer = Performer(server.api, UNUSED, UNUSED, UNUSED, UNUSED)
    asyncio.run(performer.perform(cast("Situation", situation), action))


OURS = [{"kind": "StreamCopy", "name": "orders", "uid": UID, "controller": True}]
OTHERS = [{"kind": "StreamCopy", "name": "other", "uid": "another", "controller": True}]


def test_what_a_driver_ran_from_goes_with_its_job() -> None:
    """This holds also if the Job was deleted before."""
    server = ApiServer()
    server.put(JOB, {"metadata": {"name": "sluice-1", "ownerReferences": OURS}})
    for job in ("sluice-1", "sluice-2", "sluice-3"):
        server.put(CONFIG_MAP, {"metadata": {"name": run_name(job), "ownerReferences": OURS}})
    perform(server, DeleteJob("sluice-1"))
    perform(server, DeleteJob("sluice-2"))
    assert [name for _, _, name in server.objects] == [run_name("sluice-3")]


@pytest.mark.parametrize("owners", [OTHERS, []], ids=["others", "nobody's"])
def test_what_is_called_like_a_job_of_ours_is_left_alone(owners: list[dict[str, Any]]) -> None:
    """Neither a name nor a label is enough to delete by."""
    server = ApiServer()
    labels = child_labels(UID, "driver")
    for kind, name in ((JOB, "sluice-1"), (CONFIG_MAP, run_name("sluice-1"))):
        server.put(kind, {"metadata": {"name": name, "ownerReferences": owners, "labels": labels}})
    perform(server, DeleteJob("sluice-1"))
    assert len(server.objects) == 2


def test_the_map_of_positions_takes_the_place_of_an_older_one() -> None:
    """However often and by however many operators it is written, one map exists."""
    server = ApiServer()
    older = MAPPED.model_copy(update={"sources": ()})
    for positions in (older, MAPPED, MAPPED):
        perform(server, WritePositions(positions))
        (body,) = server.objects.values()
        assert manifests.positions_of(body) == positions


def test_a_resource_expires_as_it_was_seen() -> None:
    """With another version, or as another resource of that name, it stays."""
    server = ApiServer()
    body = server.put(STREAM_COPY, {"metadata": {"name": "orders", "uid": UID}})
    changed = body | {"metadata": body["metadata"] | {"annotations": {"a": "b"}}}
    server.put(STREAM_COPY, changed)
    situation = SimpleNamespace(namespace="default", seen=copy(), kind=STREAM_COPY, body=body)
    performer = Performer(server.api, UNUSED, UNUSED, UNUSED, UNUSED)

    def expire(seen: dict[str, Any]) -> None:
        situation.body = seen
        asyncio.run(performer.perform(cast("Situation", situation), Expire()))

    old = {"metadata": {**changed["metadata"], "resourceVersion": "1"}}
    another = {"metadata": {**changed["metadata"], "uid": "another"}}
    for stale in (old, another):
        expire(stale)
        assert server.body(STREAM_COPY, "orders") is not None
    now = server.body(STREAM_COPY, "orders")
    assert now is not None
    expire(now)
    assert server.body(STREAM_COPY, "orders") is None


@pytest.mark.parametrize(
    ("attempt", "owners", "stays"),
    [("1", OURS, False), ("", OURS, False), ("2", OURS, True), ("1", OTHERS, True)],
    ids=["its attempt's", "an older version's", "a later attempt's", "others'"],
)
def test_limits_go_unless_a_later_attempt_needs_them(
    attempt: str, owners: list[dict[str, Any]], *, stays: bool
) -> None:
    """Another operator may have begun that attempt while this one was held up."""
    server = ApiServer()
    name = controls_name("orders", UID)
    labels = {ATTEMPT_LABEL: attempt} if attempt else {}
    meta = {"name": name, "ownerReferences": owners, "labels": labels}
    server.put(CONFIG_MAP, {"metadata": meta})
    child = Child(kind=STREAM_COPY, namespace="default", name="orders", uid=UID)
    memory = SimpleNamespace(controls={})
    seen = copy(status=StreamCopyStatus(attempts=1))
    situation = SimpleNamespace(namespace="default", seen=seen, child=child, memory=memory)
    situation.kind, situation.places = STREAM_COPY, ("default",)
    performer = Performer(server.api, UNUSED, UNUSED, UNUSED, UNUSED)
    asyncio.run(performer.perform(cast("Situation", situation), DropControls()))
    assert (server.body(CONFIG_MAP, name) is not None) == stays


@pytest.mark.parametrize(
    ("names", "stays"), [([], False), (["default"], True)], ids=["all", "not the other one"]
)
def test_a_copy_that_cannot_be_read_keeps_no_driver_elsewhere(
    names: list[str], *, stays: bool
) -> None:
    """Users could write a bad schedule, for example, to leave a driver without supervision."""
    server = ApiServer()
    child = Child(kind=STREAM_COPY, namespace="default", name="orders", uid=UID, host="platform")
    server.put(JOB, {"metadata": child.metadata("sluice-1", "driver")})
    settings = OperatorSettings(image="i", namespaces=names)
    performer = Performer(server.api, UNUSED, UNUSED, UNUSED, settings)
    body: dict[str, Any] = {"metadata": {"name": "orders", "namespace": "default", "uid": UID}}
    asyncio.run(performer.stop_unreadable(STREAM_COPY, body))
    assert len(server.all(JOB)) == 1
    status = {"driverNamespace": "platform"}
    asyncio.run(performer.stop_unreadable(STREAM_COPY, body | {"status": status}))
    assert (len(server.all(JOB)) == 1) == stays
