"""Rivals for the same streams, as the watches show them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sluice.kube.api.cache import Mirror
from sluice.kube.api.kinds import COPIES, EPHEMERAL_STREAM, STREAM_STORE
from sluice.kube.api.objects import STAGING_FINALIZER, STREAMS_FINALIZER
from sluice.kube.ephemeral import conflicts
from support.cases.resources import ARCHIVE, COPY, SCOPE, STORE, changed


def _body(name: str, second: int, **spec: Any) -> dict[str, Any]:
    """Return an EphemeralStream of the scope `in`, made in second `second` of a minute."""
    meta = {
        "name": name,
        "namespace": "team",
        "uid": f"uid-{name}",
        "creationTimestamp": f"2026-11-21T10:00:{second:02}Z",
    }
    return {
        "kind": "EphemeralStream",
        "metadata": meta | {"finalizers": [STREAMS_FINALIZER]},
        "spec": {"storeRef": {"name": "local"}, "scope": "in"} | spec,
        "status": {"streams": ["s"]},
    }


def _mirror(*bodies: dict[str, Any]) -> Mirror:
    mirror = Mirror()
    for name in ("local", "same"):
        store = changed(changed(STORE, "metadata.name", name), "metadata.namespace", "team")
        mirror.see(STREAM_STORE, store, gone=False)
    far = changed(changed(STORE, "metadata.name", "far"), "metadata.namespace", "team")
    far = changed(far, "spec.pravega.controllerURI", "tcp://elsewhere:9090")
    mirror.see(STREAM_STORE, far, gone=False)
    for body in bodies:
        mirror.see(COPIES.get(body["kind"], EPHEMERAL_STREAM), body, gone=False)
    return mirror


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"stream": "a"}, {"stream": "a"}),
        ({"stream": "flow-a"}, {"streamPrefix": "flow"}),
        ({"streamPrefix": "flow"}, {"stream": "flow-a"}),
        ({"streamPrefix": "flow"}, {"streamPrefix": "flow-a"}),
        ({"streamPrefix": "flow-a"}, {"streamPrefix": "flow"}),
        ({"stream": "a"}, {"stream": "a", "storeRef": {"name": "same"}}),
    ],
)
def test_an_older_resource_is_a_rival(one: dict[str, Any], other: dict[str, Any]) -> None:
    """Both may claim the same stream, by any name of their store. The younger one is no rival."""
    older, younger = _body("older", 1, **one), _body("younger", 2, **other)
    mirror = _mirror(older, younger)
    found = conflicts.rival(mirror, younger)
    assert found is not None
    assert (found.name, found.uid, found.grace) == (
        "EphemeralStream team/older",
        "uid-older",
        None,
    )
    assert conflicts.rival(mirror, older) is None


@pytest.mark.parametrize("shared", [True, False])
def test_a_rival_of_another_namespace_is_one_in_the_same_store(*, shared: bool) -> None:
    """It names a shared StreamStore, or one of its own with that name."""
    ref = {"name": "local", "namespace": "team"} if shared else {"name": "local"}
    older, younger = _body("older", 1, stream="a", storeRef=ref), _body("younger", 2, stream="a")
    older["metadata"]["namespace"] = "far"
    mirror = _mirror(older, younger)
    found = conflicts.rival(mirror, younger)
    assert (found and found.name) == ("an EphemeralStream of another namespace" if shared else None)


@pytest.mark.parametrize(
    "other",
    [
        {"stream": "b"},
        {"streamPrefix": "abcd"},
        {"stream": "a", "scope": "out"},
        {"stream": "a", "storeRef": {"name": "far"}},
        {"stream": "a", "storeRef": {"name": "unknown"}},
    ],
)
def test_others_are_no_rivals(other: dict[str, Any]) -> None:
    """They have another stream, another scope, another store, or an unknown one."""
    younger = _body("younger", 2, stream="a")
    assert conflicts.rival(_mirror(_body("older", 1, **other), younger), younger) is None


@pytest.mark.parametrize(
    ("finalizers", "status"),
    [
        ([], {"streams": ["a"]}),
        ([STREAMS_FINALIZER], None),
        ([STREAMS_FINALIZER], {"conditions": [{"type": "Ready", "status": "False"}]}),
        ([STREAMS_FINALIZER], {"streams": []}),
    ],
)
def test_an_owner_without_data_in_the_store_blocks_no_other(
    finalizers: list[str], status: dict[str, Any] | None
) -> None:
    """Any client may set a finalizer, but only the operator writes a status."""
    older, younger = _body("older", 1, stream="a"), _body("younger", 2, stream="a")
    older["metadata"]["finalizers"], older["status"] = finalizers, status
    assert conflicts.rival(_mirror(older, younger), younger) is None


def test_who_claims_a_prefix_counts_before_there_are_streams() -> None:
    """The store then has the claim, and the status says so."""
    older, younger = _body("older", 1, streamPrefix="flow"), _body("younger", 2, stream="flow-a")
    older["status"] = {"conditions": [{"type": "Ready", "status": "True"}]}
    assert conflicts.rival(_mirror(older, younger), younger) is not None


def test_what_is_in_another_namespace_is_not_named() -> None:
    """The message only says that it exists, since that decides."""
    older, younger = _body("older", 1, stream="a"), _body("younger", 2, stream="a")
    older["metadata"]["namespace"] = "others"
    mirror = _mirror(older, younger)
    there = changed(changed(STORE, "metadata.name", "local"), "metadata.namespace", "others")
    mirror.see(STREAM_STORE, there, gone=False)
    found = conflicts.rival(mirror, younger)
    assert found is not None
    assert found.name == "an EphemeralStream of another namespace"


def test_of_two_of_one_second_one_is_older() -> None:
    """Both see the same resource as the older one."""
    one, other = _body("a", 1, stream="s"), _body("b", 1, stream="s")
    mirror = _mirror(one, other)
    assert conflicts.rival(mirror, one) is None
    assert conflicts.rival(mirror, other) is not None


def test_what_was_released_claims_nothing() -> None:
    """Its stream is deleted, or left to other clients."""
    older = _body("older", 1, stream="a") | {
        "status": {"streams": ["a"], "release": {"reason": "OwnersDeleted"}}
    }
    younger = _body("younger", 2, stream="a")
    assert conflicts.rival(_mirror(older, younger), younger) is None


def test_one_that_goes_leaves_its_stream_for_a_while() -> None:
    """It stays a rival during its grace period, and the answer has the seconds that are left."""
    gone = (datetime.now(UTC) - timedelta(seconds=10)).strftime("%Y-%m-%dT%H:%M:%SZ")
    older = _body("older", 1, stream="a", gracePeriodSeconds=60)
    older["metadata"]["deletionTimestamp"] = gone
    younger = _body("younger", 2, stream="a")
    found = conflicts.rival(_mirror(older, younger), younger)
    assert found is not None
    assert found.grace is not None
    assert 45 < found.grace <= 50


@pytest.mark.parametrize(
    ("finalizers", "spec", "expected"),
    [
        ([STAGING_FINALIZER], {"stream": "s"}, ("StreamCopy team/orders",)),
        ([STAGING_FINALIZER], {"streamPrefix": "s"}, ("StreamCopy team/orders",)),
        ([STAGING_FINALIZER], {"stream": "other"}, ()),
        ([], {"stream": "s"}, ()),
    ],
)
def test_copies_that_are_not_done_read_their_source(
    finalizers: list[str], spec: dict[str, Any], expected: tuple[str, ...]
) -> None:
    """The finalizer, which stays until the copy needs no store, and its plan show it."""
    copy = changed(COPY, "metadata", {"name": "orders", "namespace": "team", "uid": "u"})
    copy["metadata"]["finalizers"] = finalizers
    copy = changed(
        copy, "spec.source", {"storeRef": {"name": "same"}, "scope": "in", "stream": "s"}
    )
    body = _body("helper", 1, **spec)
    assert conflicts.readers(_mirror(copy, body), body) == (), "any client may set a finalizer"
    copy["status"] = {"planHash": "h"}
    assert conflicts.readers(_mirror(copy, body), body) == expected


@pytest.mark.parametrize(
    ("finalizers", "scope", "ephemeral", "expected"),
    [
        ([STAGING_FINALIZER], "in", True, ("ScopeCopy team/shop",)),
        ([STAGING_FINALIZER], "in", False, ()),
        ([STAGING_FINALIZER], "in", None, ()),
        ([STAGING_FINALIZER], "other", True, ()),
        ([], "in", True, ()),
    ],
)
@pytest.mark.parametrize("spec", [{"stream": "s"}, {"streamPrefix": "s"}])
def test_a_copy_of_a_scope_reads_what_is_ephemeral_if_it_is_to(
    finalizers: list[str],
    scope: str,
    *,
    ephemeral: bool | None,
    expected: tuple[str, ...],
    spec: dict[str, Any],
) -> None:
    """It may read any stream of the scope. If it leaves these out, no release waits for it."""
    copy = changed(SCOPE, "metadata", {"name": "shop", "namespace": "team", "uid": "u"})
    copy["metadata"]["finalizers"] = finalizers
    copy["status"] = {"planHash": "h"}
    copy = changed(copy, "spec.source", {"storeRef": {"name": "same"}, "scope": scope})
    if ephemeral is not None:
        copy = changed(copy, "spec.streams", {"includeEphemeral": ephemeral})
    body = _body("helper", 1, **spec)
    assert conflicts.readers(_mirror(copy, body), body) == expected


def test_an_archive_reads_while_a_run_goes_on() -> None:
    """At rest it reads nothing, even if its finalizer stays for its deletion."""
    meta = {"name": "orders", "namespace": "team", "finalizers": [STAGING_FINALIZER]}
    archive = changed(ARCHIVE, "metadata", meta)
    own = _body("own", 1, stream="orders")
    assert conflicts.readers(_mirror(archive), own) == ()
    conditions = [{"type": "Reconciling", "status": "True"}]
    going = archive | {"status": {"conditions": conditions, "planHash": "h"}}
    assert conflicts.readers(_mirror(going), own) == ("StreamArchive team/orders",)
