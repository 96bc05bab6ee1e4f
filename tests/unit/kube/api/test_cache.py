from __future__ import annotations

import json
from typing import TYPE_CHECKING

from sluice.kube.api.cache import Mirror
from sluice.kube.api.kinds import JOB, POD, STREAM_COPY, STREAM_STORE
from sluice.kube.api.names import UID_LABEL, copy_of
from sluice.kube.api.slim import LAST_APPLIED, identified, slim

if TYPE_CHECKING:
    from sluice.kube.api.kinds import Object


class Clock:
    """Time that passes when a test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


def made() -> tuple[Mirror, Clock]:
    """Return a mirror and its clock."""
    clock = Clock()
    return Mirror(clock), clock


def thing(
    name: str, *, version: str = "1", namespace: str = "team", uid: str = "", **labels: str
) -> Object:
    """Return an object."""
    meta: Object = {"name": name, "namespace": namespace, "resourceVersion": version, "uid": uid}
    return {"metadata": meta | ({"labels": labels} if labels else {})}


def test_the_mirror_shows_what_was_seen_last() -> None:
    """`see` takes the new state of an object, and returns the former one."""
    mirror, _ = made()
    first, second = thing("a"), thing("a", version="2")
    assert mirror.see(POD, first, gone=False) is None
    assert mirror.see(POD, second, gone=False) == first
    assert mirror.get(POD, "team", "a") == second
    assert mirror.get(POD, "other", "a") is None
    assert mirror.get(JOB, "team", "a") is None
    assert mirror.see(POD, second, gone=True) == second
    assert mirror.get(POD, "team", "a") is None
    assert mirror.see(POD, second, gone=True) is None


def test_late_news_of_a_former_object_change_nothing_of_its_namesake() -> None:
    """An object may be made again under its name before its deletion is shown."""
    mirror, _ = made()
    former, leaving = thing("a", version="5", uid="1"), thing("a", version="7", uid="1")
    latter = thing("a", version="8", uid="2")
    for body, gone in ((former, False), (latter, False), (leaving, False), (leaving, True)):
        mirror.see(POD, body, gone=gone)
    assert mirror.get(POD, "team", "a") == latter
    mirror.see(POD, thing("a", version="9", uid="2"), gone=True)
    assert mirror.get(POD, "team", "a") is None


def test_objects_are_found_by_namespace_and_label() -> None:
    """Objects of another namespace, or without the label, do not count."""
    mirror, _ = made()
    a, b = thing("a", **{UID_LABEL: "1"}), thing("b", **{UID_LABEL: "2"})
    far, bare = thing("a", namespace="other", **{UID_LABEL: "1"}), thing("c")
    for body in (a, b, far, bare):
        mirror.see(POD, body, gone=False)
    assert list(mirror.all(POD)) == [a, b, far, bare]
    assert list(mirror.all(POD, "team")) == [a, b, bare]
    assert mirror.where(POD, copy_of, ("team", "1")) == [a]


def test_looking_through_the_mirror_does_not_mind_news() -> None:
    """A change during the loop does not break it."""
    mirror, _ = made()
    for name in "abc":
        mirror.see(POD, thing(name), gone=False)
    for body in mirror.all(POD):
        mirror.see(POD, body, gone=True)
        mirror.see(POD, thing("new"), gone=False)
    assert list(mirror.all(POD)) == [thing("new")]


def test_a_watch_is_behind_when_it_missed_a_change() -> None:
    """The mirror lacks a listed object in that state, and has seen no change of it since."""
    mirror, clock = made()
    mirror.see(POD, thing("a"), gone=False)
    clock.now = 10
    assert not mirror.is_behind(POD, thing("a"), since=5)
    assert mirror.is_behind(POD, thing("a", version="2"), since=5)
    assert mirror.is_behind(POD, thing("b"), since=5)
    mirror.see(POD, thing("a", version="3"), gone=False)
    assert not mirror.is_behind(POD, thing("a", version="2"), since=5)


def test_what_a_full_list_does_not_have_is_forgotten() -> None:
    """A watch that was cut off never shows deletions from that time."""
    mirror, clock = made()
    for name in ("stays", "gone"):
        mirror.see(POD, thing(name), gone=False)
    mirror.see(JOB, thing("gone"), gone=False)
    clock.now = 10
    mirror.see(POD, thing("new"), gone=False)
    dropped = mirror.keep_only(POD, [thing("stays", version="7")], since=5)
    assert dropped == [thing("gone")]
    assert [body["metadata"]["name"] for body in mirror.all(POD)] == ["stays", "new"]
    assert mirror.get(POD, "team", "stays") == thing("stays")
    assert mirror.get(JOB, "team", "gone") is not None
    mirror.keep_only(JOB, [thing("gone", namespace="other")], since=5)
    assert list(mirror.all(JOB)) == []


def test_objects_are_found_by_what_a_function_gives() -> None:
    """The result has their present state, including objects older than the index."""

    def colour(body: Object) -> str:
        return str(body["metadata"]["labels"]["colour"])

    def body(name: str, paint: str) -> Object:
        return thing(name, colour=paint)

    mirror = Mirror()
    mirror.see(POD, body("early", "red"), gone=False)
    assert mirror.where(POD, colour, "red") == [body("early", "red")]
    mirror.see(POD, body("late", "red"), gone=False)
    mirror.see(POD, body("early", "blue"), gone=False)
    assert mirror.where(POD, colour, "red") == [body("late", "red")]
    assert mirror.where(POD, colour, "blue") == [body("early", "blue")]
    mirror.see(POD, body("late", "red"), gone=True)
    mirror.keep_only(POD, [], since=float("inf"))
    assert mirror.where(POD, colour, "red") == []
    assert mirror.where(POD, colour, "blue") == []
    mirror.see(POD, body("late", "red"), gone=False)
    assert mirror.where(POD, colour, "red") == [body("late", "red")]


def test_an_object_is_found_by_each_of_several_values() -> None:
    """It is not found by values that it has no more."""
    mirror = Mirror()

    def words(body: Object) -> frozenset[str]:
        return frozenset(body["spec"]["words"])

    def seen(*said: str, gone: bool = False) -> None:
        meta = {"namespace": "team", "name": "one", "uid": "u"}
        mirror.see(STREAM_COPY, {"metadata": meta, "spec": {"words": said}}, gone=gone)

    seen("a", "b")
    assert [len(mirror.where(STREAM_COPY, words, one)) for one in "abc"] == [1, 1, 0]
    seen("b", "c")
    assert [len(mirror.where(STREAM_COPY, words, one)) for one in "abc"] == [0, 1, 1]
    seen("b", "c", gone=True)
    assert [len(mirror.where(STREAM_COPY, words, one)) for one in "abc"] == [0, 0, 0]


def test_of_what_there_are_thousands_little_is_kept() -> None:
    """The mirror drops templates of Jobs and pods, and status texts for users."""
    meta = {"name": "a", "namespace": "team", "managedFields": [{}], "finalizers": ["f"]}
    status = {
        "planHash": "h",
        "history": [{}] * 10,
        "conditions": [{"type": "Ready", "status": "True", "message": "m" * 1000}],
    }
    spec = {"nodeName": "n", "containers": [{}]}
    body = {"kind": "X", "metadata": meta, "spec": spec, "status": status}
    kept = {"name": "a", "namespace": "team", "finalizers": ["f"]}
    told = {"planHash": "h", "conditions": [{"type": "Ready", "status": "True"}]}
    assert slim(POD, body) == body | {"metadata": kept, "spec": {"nodeName": "n"}}
    assert slim(JOB, {"metadata": meta, "spec": {"template": {}}}) == {"metadata": kept}
    assert slim(STREAM_COPY, body) == body | {"metadata": kept, "status": told}
    assert slim(STREAM_STORE, body) == body | {"metadata": kept}
    assert slim(STREAM_COPY, {"metadata": meta}) == {"metadata": kept}
    notes = {LAST_APPLIED: "{}", "sluice.dev/requestedAt": "now"}
    noted = {"metadata": meta | {"annotations": notes}}
    asked = {"metadata": kept | {"annotations": {"sluice.dev/requestedAt": "now"}}}
    assert slim(STREAM_COPY, noted) == asked


def test_the_resync_keeps_who_an_object_is_and_whose() -> None:
    """A round has these facts of all objects in memory at once."""
    meta = {"name": "a", "namespace": "team", "uid": "u", "resourceVersion": "7", "generation": 2}
    labels = {"labels": {UID_LABEL: "c", "x": "y"}, "annotations": {"long": "text"}}
    kept = {"name": "a", "namespace": "team", "uid": "u", "resourceVersion": "7"}
    assert identified({"metadata": meta, "spec": {}}) == {"metadata": kept}
    assert identified({"metadata": meta | labels}) == {
        "metadata": kept | {"labels": {UID_LABEL: "c"}}
    }


def test_our_own_resources_are_there_as_a_whole_too() -> None:
    """Unread fields are left out. Jobs and pods are not kept whole."""
    mirror = Mirror()
    body = thing("a") | {"kind": "StreamCopy", "status": {"history": [{"attempt": 1}]}}
    told = body | {"metadata": body["metadata"] | {"managedFields": [{}]}}
    mirror.see(STREAM_COPY, told, gone=False)
    mirror.see(POD, thing("a"), gone=False)
    assert mirror.whole(STREAM_COPY, "team", "a") == body
    assert mirror.whole(STREAM_COPY, "team", "b") is None
    assert mirror.whole(POD, "team", "a") is None
    assert (mirror.get(STREAM_COPY, "team", "a") or {})["status"] == {"conditions": []}


def test_texts_that_many_objects_have_exist_once() -> None:
    """These are names of fields, and short values."""
    mirror = Mirror()
    for name in ("a", "b"):
        text = json.dumps(thing(name) | {"spec": {"source": {"storeRef": {"name": "local"}}}})
        mirror.see(STREAM_COPY, json.loads(text), gone=False)
    first, second = (body["spec"]["source"]["storeRef"] for body in mirror.all(STREAM_COPY))
    assert first["name"] is second["name"]
    assert next(iter(first)) is next(iter(second))


def test_objects_are_counted_by_what_a_function_gives() -> None:
    """The count equals the number of objects found."""
    mirror = Mirror()
    for name in "abc":
        mirror.see(POD, thing(name, namespace="team" if name == "a" else "other"), gone=False)
    assert [mirror.count(POD, place, one) for one in ("team", "other", "none")] == [1, 2, 0]


def place(body: Object) -> str:
    """Return the namespace of an object."""
    return str(body["metadata"]["namespace"])
