"""Whole scopes that the command copies. The Java client writes, changes and describes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import pytest

from support.command.scope_command import ScopeCopy
from support.command.sluice_command import finish
from support.store.scopes import (
    NAMES,
    STREAMS,
    TRUNCATED,
    Seen,
    assert_alike,
    assert_equal,
    fill,
    names_in,
    seen,
)
from support.until import TIGHT, until

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from localstore import ForeignClient, Standalone
    from support.command.sluice_command import Finished

RENAMES: Final = [
    {"fromPrefix": "orders-", "toPrefix": "sales-"},
    {"fromPrefix": "", "toPrefix": "old-"},
]
MAKE: Final = {"scopePolicy": "CreateIfAbsent"}
LARGEST: Final = "images"
READ: Final = ("orders-2", "orders-4")
"""A stream with scale events, and one that was truncated: events and their order are read."""


@dataclass(frozen=True)
class Shop:
    """A scope of streams, with a key-value table and a reader group.

    Attributes:
        scope: its name.
        streams: its streams.
        digests: digests of some streams' events, by the foreign reader.
    """

    scope: str
    streams: Mapping[str, Seen]
    digests: Mapping[str, str]


@pytest.fixture(scope="module")
def shop(standalone: Standalone, foreign: ForeignClient) -> Shop:
    """Return a scope that no test changes for long."""
    scope = f"shop-{uuid4().hex[:8]}"
    fill(foreign, scope)
    foreign.create_table(scope, "prices")
    foreign.create_group(scope, "billing", "orders-0")
    digests = {name: foreign.read(scope, name).digest for name in READ}
    return Shop(scope, seen(standalone.segment_store, foreign, scope, NAMES), digests)


@pytest.fixture
def copy(tmp_path: Path, standalone: Standalone, shop: Shop) -> ScopeCopy:
    """Return a copy of that scope into one that is made for it."""
    target = f"copy-{uuid4().hex[:8]}"
    spec: dict[str, Any] = {"target": MAKE}
    return ScopeCopy(tmp_path, standalone.controller_uri, shop.scope, target, spec=spec)


def renamed(name: str) -> str:
    """Return a target's name by RENAMES."""
    before, after = ("orders-", "sales-") if name.startswith("orders-") else ("", "old-")
    return after + name.removeprefix(before)


def only(finished: Finished) -> dict[str, Any]:
    """Return the entry of the file's only copy in a command's JSON."""
    (found,) = finished.json
    assert isinstance(found, dict)
    return found


def of_state(report: Mapping[str, Any], state: str) -> list[str]:
    """Return the streams of a report that are in a state, sorted."""
    return sorted(one["stream"] for one in report["streams"] if one["state"] == state)


def assert_read(foreign: ForeignClient, shop: Shop, target: str) -> None:
    """Check that the targets have the sources' events in order per key, by the foreign reader."""
    for name, digest in shop.digests.items():
        read = foreign.read(target, name)
        # The source, too, lacks the truncated events of some keys.
        assert (read.out_of_order, read.duplicates, read.foreign) == (0, 0, 0), read
        assert name in TRUNCATED or read.clean, read
        assert read.digest == digest


@pytest.mark.exhaustive
@pytest.mark.parametrize("lost", ["zz-little", "zz-large"], ids=["not begun yet", "half copied"])
def test_a_stream_that_is_deleted_midway_fails_by_name_and_the_others_are_copied(
    copy: ScopeCopy, shop: Shop, standalone: Standalone, foreign: ForeignClient, lost: str
) -> None:
    """A deleted stream fails by name. Once it exists again, the next run copies only it.

    All targets are in a scope of the same store and have other names.
    """
    large = lost == "zz-large"
    size, events = (100_000, 600) if large else (100, 5)

    def make() -> None:
        foreign.create(shop.scope, lost, segments=2)
        foreign.write(shop.scope, lost, events=events, size=size, keys=4)

    make()
    copy.spec |= {
        "rename": RENAMES,
        "limits": {"bytesPerSecond": "8Mi"},
        "parallelism": 2,  # so that the last streams begin late
    }
    try:
        begun = renamed(lost if large else LARGEST)
        with copy.running("run", "-o", "json") as process:
            until(
                "it is midway", lambda: begun in (names_in(foreign, copy.target) or ()), poll=TIGHT
            )
            assert large or renamed(lost) not in (names_in(foreign, copy.target) or ())
            foreign.delete(shop.scope, lost)
            assert process.poll() is None, "it was over before the stream was deleted"
            ended = finish(process)
        report = only(ended)
        (failed,) = [one for one in report["streams"] if one["state"] != "Copied"]
        assert (failed["stream"], failed["target"]) == (lost, renamed(lost))
        assert failed["state"] == "Failed"
        assert failed["trouble"]["reason"] in {"SourceNotFound", "SourceReplaced"}
        assert ended.code != 0
        assert f"{shop.scope}/{lost}" in ended.err
        assert of_state(report, "Copied") == sorted(NAMES)
        assert report["run"] == 1
        first = seen(standalone.segment_store, foreign, copy.target)
        assert_equal(shop.streams, first, renamed=renamed)
        assert copy.is_logged

        make()
        again = copy.run("run", "-o", "json")
        assert again.code == 0, again.err
        report = only(again)
        assert report["run"] == 2
        assert report["counts"] == {"alreadyComplete": len(NAMES), "copied": 1}
        second = seen(standalone.segment_store, foreign, copy.target)
        source = seen(standalone.segment_store, foreign, shop.scope, [lost])
        assert_alike(lost, source[lost], second.pop(renamed(lost)))
        assert second == first
        assert not copy.is_logged
    finally:
        foreign.delete(shop.scope, lost)


@pytest.mark.exhaustive
def test_a_run_that_is_killed_again_and_again_is_finished_by_the_next_one(
    copy: ScopeCopy, shop: Shop, standalone: Standalone, foreign: ForeignClient
) -> None:
    """After several kills, each stream equals its source, and no staging and no log is left."""
    copy.spec |= {"limits": {"bytesPerSecond": "6Mi"}, "parallelism": 8}
    planned = only(copy.run("plan", "-o", "json"))
    assert planned["streams"][0]["stream"] == LARGEST
    sizes = [one["bytes"] for one in planned["streams"]]
    assert sizes == sorted(sizes, reverse=True)
    assert planned["keyValueTables"] == ["prices"]
    (internal,) = planned["leftOut"]
    assert (internal["why"], "_RGbilling" in internal["streams"]) == ("Internal", True)
    for least in (1, len(STREAMS) - 2):
        with copy.running() as process:
            until(
                f"{least} targets are there",
                lambda least=least: len(names_in(foreign, copy.target) or ()) >= least,
                poll=TIGHT,
            )
            assert process.poll() is None, "it was over before it was killed"
    assert copy.is_logged
    ended = copy.run("run", "-o", "json")
    assert ended.code == 0, ended.err
    report = only(ended)
    assert of_state(report, "Copied") == sorted(NAMES)
    assert (report["run"], report["kept"], report["keyValueTables"]) == (1, None, ["prices"])
    assert report["bytes"] == sum(stream.bytes for stream in shop.streams.values())
    assert_equal(shop.streams, seen(standalone.segment_store, foreign, copy.target))
    assert_read(foreign, shop, copy.target)
    assert copy.left_of(standalone.segment_store, planned) == []
    assert not copy.is_logged
    assert only(copy.run("run", "-o", "json"))["counts"] == {"alreadyComplete": len(NAMES)}


@pytest.mark.exhaustive
def test_a_scope_is_moved(tmp_path: Path, standalone: Standalone, foreign: ForeignClient) -> None:
    """A moved scope is gone at the source, and the targets equal the former streams."""
    scope, target = (f"{name}-{uuid4().hex[:8]}" for name in ("leaves", "moved"))
    fill(foreign, scope)
    before = seen(standalone.segment_store, foreign, scope)
    assert len(before) == len(STREAMS)
    spec: dict[str, Any] = {"target": MAKE, "sourceOnComplete": "Delete"}
    move = ScopeCopy(tmp_path, standalone.controller_uri, scope, target, spec=spec)
    planned = only(move.run("plan", "-o", "json"))
    assert names_in(foreign, target) is None
    ended = move.run("run", "-o", "json")
    assert ended.code == 0, ended.err
    assert only(ended)["kept"] is None
    assert names_in(foreign, scope) is None
    assert_equal(before, seen(standalone.segment_store, foreign, target))
    assert move.left_of(standalone.segment_store, planned) == []
    assert not move.is_logged
