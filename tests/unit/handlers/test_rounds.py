"""The resources that a round of the resync checks: no missed change stays unnoticed."""

from __future__ import annotations

import asyncio
import copy
from typing import TYPE_CHECKING, Any, Final
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.handlers import resync
from sluice.handlers.resync import TURNS, Resync, is_due
from sluice.handlers.watches import Watches
from sluice.kube.api.cache import Mirror
from sluice.kube.api.kinds import (
    EPHEMERAL_STREAM,
    JOB,
    OWN,
    POD,
    SCOPE_COPY,
    STREAM_ARCHIVE,
    STREAM_COPY,
    STREAM_STORE,
)
from sluice.kube.api.names import MANAGED, UID_LABEL
from sluice.kube.api.objects import REQUESTED_AT, STAGING_FINALIZER, STREAMS_FINALIZER
from sluice.kube.api.rest import is_at_rest, is_settled
from sluice.kube.loop.queue import Key, Lane, WorkQueue
from sluice.metrics import Metrics
from support.cases.resources import COPY, EPHEMERAL, STORE, changed
from support.kube.api_server import ApiServer

if TYPE_CHECKING:
    from sluice.kube.api.kinds import Kind, Object

_LABEL, _, _VALUE = MANAGED.partition("=")
CHILDREN: Final = (JOB, POD)
KINDS: Final = (STREAM_COPY, EPHEMERAL_STREAM, STREAM_STORE, *CHILDREN)
DONE: Final = [{"type": "Succeeded", "status": "True"}, {"type": "Ready", "status": "True"}]


class Bench:
    """A cluster, an operator's watches, which may miss changes, and its resync."""

    def __init__(self) -> None:
        self.server, self.mirror, self.queue = ApiServer(), Mirror(), WorkQueue()
        self.watches = Watches(self.queue, self.mirror)
        self.resync = Resync(
            self.server.api,
            queue=self.queue,
            mirror=self.mirror,
            watches=self.watches,
            metrics=Metrics(),
            namespaces=[],
            seconds=60,
        )

    def show(self) -> None:
        """Show all news to the watches."""
        for kind, body, gone in self.server.news:
            if kind in OWN:
                self.watches.resource(OWN[kind], body, gone=gone)
            else:
                self.watches.child(JOB if kind == JOB.name else POD, body, gone=gone)
        self.server.news.clear()

    def round(self) -> dict[Key, Lane]:
        """Make a round. Return the keys that it has queued, with their lanes."""
        for lane in Lane:
            self.queue._lanes[lane].at.clear()
            self.queue._lanes[lane].due.clear()
        with mock.patch.object(asyncio, "sleep", _at_once):
            asyncio.run(self.resync._round())
        return {key: lane for lane in Lane for key in self.queue._lanes[lane].at}

    def put(self, kind: Kind, name: str, **parts: Any) -> Object:
        """Make a resource that is settled, or a Job or a pod of the copy of that name."""
        meta: Object = {"name": name, "generation": 1}
        if kind in CHILDREN:
            owner = self.server.body(STREAM_COPY, name)
            uid = owner["metadata"]["uid"] if owner else "of-nobody"
            meta["labels"] = {_LABEL: _VALUE, UID_LABEL: uid}
        body = {"metadata": meta, "spec": {}, "status": status(DONE)} | parts
        return self.server.put(kind, copy.deepcopy(body))


async def _at_once(_seconds: float) -> None:
    """Sleep for no time."""


def status(conditions: list[Object], **fields: Any) -> Object:
    """Return a status of generation 1 with these conditions."""
    return {"observedGeneration": 1, "conditions": conditions} | fields


changes = st.tuples(
    st.sampled_from(KINDS),
    st.sampled_from("abc"),
    st.sampled_from(["put", "edit", "remove", "destroy"]),
    st.booleans(),
)


@given(st.lists(changes, max_size=6), st.lists(changes, min_size=1, max_size=6))
def test_a_round_finds_all_that_the_watches_missed(
    before: list[tuple[Kind, str, str, bool]], missed: list[tuple[Kind, str, str, bool]]
) -> None:
    """Objects may be new, changed, in deletion or gone: resources, and Jobs and pods of copies.

    So a missed event is found within `operator.resyncSeconds` and the time of a list.
    """
    bench = Bench()
    for kind in KINDS:
        for name in "ab":
            bench.put(kind, name)
    for change in before:
        act(bench, *change)
    bench.show()
    bench.round()
    needed = [(*change[:2], act(bench, *change)) for change in missed]
    bench.server.news.clear()
    # Objects that were made and deleted between two rounds leave nothing to find.
    keys = {
        key
        for kind, name, found in needed
        if bench.mirror.get(kind, "default", name) or bench.server.body(kind, name)
        for key in found
    }
    found = bench.round()
    assert keys <= found.keys()
    for key in keys:
        body = bench.server.body(OWN[key.kind], key.name)
        if body is not None and "deletionTimestamp" in body["metadata"]:
            assert found[key] is Lane.DELETION
    bench.show()
    for kind in KINDS:
        there = {body["metadata"]["name"] for body in bench.server.all(kind)}
        assert {body["metadata"]["name"] for body in bench.mirror.all(kind)} <= there


def act(bench: Bench, kind: Kind, name: str, what: str, held: bool) -> set[Key]:  # noqa: FBT001
    """Change an object. Return the resources that need a look then."""
    body = bench.server.body(kind, name)
    if what == "put":
        if body is not None:
            return set()
        meta = {"finalizers": ["x"]} if held else {}
        body = bench.put(kind, name)
        bench.server.edit(kind, name, metadata=meta)
    elif body is None:
        return set()
    elif what == "edit":
        bench.server.edit(kind, name, spec={"changed": bench.server.clock().isoformat()})
    elif what == "remove":
        bench.server.remove(kind, name)
    else:
        bench.server.destroy(kind, name)
    if kind not in CHILDREN:
        known = bench.mirror.get(kind, "default", name)
        there = bench.server.body(kind, name)
        return {Key(kind.name, "default", name)} if known or there else set()
    uid = body["metadata"]["labels"][UID_LABEL]
    known = bench.mirror.get(kind, "default", name)
    there = bench.server.body(kind, name)
    if there is None and (known is None or known["metadata"]["labels"][UID_LABEL] != uid):
        return set()  # the object was made and deleted
    return {
        Key(STREAM_COPY.name, "default", one["metadata"]["name"])
        for one in bench.server.all(STREAM_COPY)
        if one["metadata"]["uid"] == uid
    }


def test_what_the_watches_show_late_after_the_start_is_no_news() -> None:
    """The first list may end before them. Only what they miss after the grace time counts."""
    bench = Bench()
    bench.put(STREAM_COPY, "done")

    async def shown(_seconds: float) -> None:
        bench.show()

    with mock.patch.object(asyncio, "sleep", shown):
        asyncio.run(bench.resync._round())
    assert bench.queue.depth(Lane.NORMAL) == 0
    late = Bench()
    late.put(STREAM_COPY, "done")
    # The grace time is of the real clock, and the round would spin for all of it.
    with mock.patch.object(resync, "WATCH_GRACE", 0.1):
        assert late.round() == {Key("StreamCopy", "default", "done"): Lane.NORMAL}


def test_each_resource_that_is_settled_has_its_turn() -> None:
    """Each has one look in thirty rounds, about equally many in each round."""
    bench = Bench()
    for number in range(300):
        bench.put(EPHEMERAL_STREAM, f"n{number}")
    bench.show()
    assert len(bench.round()) == 300  # the first round, before this process knows any object
    rounds = [bench.round() for _ in range(TURNS)]
    assert sorted(key.name for found in rounds for key in found) == sorted(
        f"n{number}" for number in range(300)
    )
    assert max(map(len, rounds)) < 40


READY: Final = {"type": "Ready", "status": "True"}
WORKING: Final = [{"type": "Ready", "status": "False"}, {"type": "Reconciling", "status": "True"}]
STALLED: Final = [{"type": "Ready", "status": "False"}, {"type": "Stalled", "status": "True"}]


@pytest.mark.parametrize(
    ("parts", "settled"),
    [
        ({}, True),
        ({"status": status(STALLED)}, True),
        ({"status": status([{"type": "Suspended", "status": "True"}])}, True),
        ({"status": status(WORKING)}, False),
        ({"status": status([])}, False),
        ({"status": {}}, False),
        ({"metadata.generation": 2}, False),
        ({"metadata.deletionTimestamp": "2026-01-02T03:04:05Z"}, False),
        ({"metadata.annotations": {REQUESTED_AT: "now"}}, False),
        (
            {
                "metadata.annotations": {REQUESTED_AT: "now"},
                "status": status(DONE, lastHandledRequestedAt="now"),
            },
            True,
        ),
    ],
)
def test_what_is_settled(parts: Object, *, settled: bool) -> None:
    """It has an end or a lasting state of this generation, and no waiting request."""
    body = made(COPY, **parts)
    assert is_settled(body) is settled
    looked = [turn for turn in range(1, 2 * TURNS) if is_due(STREAM_COPY, body, turn)]
    assert (len(looked) < 3) is settled


@pytest.mark.parametrize(
    ("kind", "parts", "rests"),
    [
        (STREAM_COPY, {}, True),
        (SCOPE_COPY, {}, True),
        (STREAM_COPY, {"status": status(STALLED)}, False),
        (STREAM_COPY, {"metadata.finalizers": ["other"]}, True),
        (STREAM_COPY, {"metadata.finalizers": [STAGING_FINALIZER]}, False),
        (STREAM_COPY, {"spec.ttlSecondsAfterFinished": 60}, False),
        (STREAM_COPY, {"status": status(DONE, jobRef={"name": "j"})}, False),
        (SCOPE_COPY, {"spec.schedule": {"cron": "0 0 * * *"}}, False),
        (STREAM_ARCHIVE, {"spec.verify": {"schedule": {"cron": "0 0 * * *"}}}, False),
        (EPHEMERAL_STREAM, {}, False),
        (EPHEMERAL_STREAM, {"status": status(DONE, release={"completed": "t"})}, True),
        (
            EPHEMERAL_STREAM,
            {
                "status": status(DONE, release={"completed": "t"}),
                "metadata.finalizers": [STREAMS_FINALIZER],
            },
            False,
        ),
        (STREAM_STORE, {}, False),
    ],
)
def test_what_is_at_rest(kind: Kind, parts: Object, *, rests: bool) -> None:
    """It has no remains and waits for no time: after a start it has its usual turn."""
    body = made(EPHEMERAL if kind == EPHEMERAL_STREAM else COPY, **parts)
    assert is_at_rest(kind, body) is rests
    turns = [is_due(kind, body | {"metadata": body["metadata"] | {"uid": str(n)}}, 0) for n in "ab"]
    assert rests or all(turns)


def test_grants_of_stores_of_other_namespaces_are_looked_at_in_each_round() -> None:
    """They depend on labels of namespaces, which the operator does not watch."""
    body = made(COPY, **{"spec.source.storeRef": {"name": "main", "namespace": "platform"}})
    assert all(is_due(STREAM_COPY, body, turn) for turn in range(TURNS))
    store = made(STORE)
    assert all(is_due(STREAM_STORE, store, turn) for turn in range(TURNS))


def test_after_a_start_what_is_over_is_not_looked_at_at_once() -> None:
    """Most resources are finished, and none of these needs an action."""
    bench = Bench()
    bench.put(STREAM_COPY, "done")
    bench.put(STREAM_COPY, "at-work", status=status(WORKING))
    bench.show()
    woken = {key.name for key in bench.queue._lanes[Lane.NORMAL].at}
    assert woken == {"at-work"}


def made(document: Object, **parts: Any) -> Object:
    """Return a finished resource with these changes."""
    meta = {"namespace": "default", "uid": "5b6a7c1e", "generation": 1}
    body = document | {"metadata": document["metadata"] | meta, "status": status(DONE)}
    for path, value in parts.items():
        body = changed(body, path, value)
    return body
