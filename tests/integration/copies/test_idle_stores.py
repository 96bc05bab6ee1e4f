"""Sluice in a store that has evicted all earlier data of Sluice from its memory.

A store evicts segments without use after a minute or two. So all tests share one wait, and their
streams are made before it. Each test has streams of its own, since a look at a segment brings it
back into memory.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

import pytest

from localstore import ForeignClientError
from sluice.core.claims.claim import Claim, Claimant, Ownership
from sluice.core.copy.steps import (
    ConfigureTarget,
    DeleteJournal,
    DeleteSource,
    DrainSource,
    Publish,
    Seal,
    Verify,
)
from sluice.core.scope.scope import StreamState
from sluice.core.values.model import KeyRange, StoreAddress, StreamConfig, StreamName
from sluice.core.workloads.answers import Complete, Planned, ScopeEnded
from sluice.engine.claims import claims
from sluice.engine.copy.report import Outcome
from sluice.pipelines.programs.stores import Stores
from support.command.scope_command import ScopeCopy
from support.command.sluice_command import Copy
from support.crash import cut_driver
from support.engine.append_points import APPENDING
from support.search import near, searches
from support.store.idle import wait_until_evicted
from support.store.inline import SETTINGS, drive, job_of, run_inline, told
from support.store.live_copies import Follower, is_live
from support.until import until
from support.witness.foreign_witness import events_in

if TYPE_CHECKING:
    from pathlib import Path

    from localstore import ForeignClient, Standalone
    from sluice.core.copy.plan import StreamPlan
    from sluice.core.copy.steps import Step
    from sluice.core.workloads.answers import Answer
    from sluice.core.workloads.plan import Plan
    from sluice.stores.pravega.store import PravegaStore

pytestmark = [pytest.mark.patient, pytest.mark.timeout(600)]

EVENTS = 400
KEYS = 16
GROUP = "billing"
LIVE_GROUP = "live-billing"

Stop = tuple["type[Step]", bool]

COPYING = near(
    {
        "stitched": (Verify, False),
        "verified": (Publish, False),
        "published": (Publish, True),
        "configured": (ConfigureTarget, True),
        "sealed": (Seal, True),
        "but for the journal": (DeleteJournal, False),
    },
    "stitched",
    "but for the journal",
)
"""The step, and whether the copy is cut off after it or before it."""

ASKED = ("requested", "sealed", "applied", "verified", "read")
"""The questions that tests ask about whole copies."""

MOVING = near(
    {
        "drained": (DrainSource, True),
        "published": (Publish, True),
        "whole, source there": (DeleteSource, False),
        "but for the journal": (DeleteJournal, False),
    },
    "whole, source there",
)
CUTS = {
    one.name: one
    for one in APPENDING
    if one.name in {"before the first merge", "before the first commit"} or one.call == "delete"
}


@dataclass
class Scene:
    """The copies, moves and claims that were made before the store evicted them.

    Attributes:
        copies: interrupted copies, by the point of interruption.
        moves: interrupted moves, by the point of interruption.
        appends: interrupted appends, by the point of interruption.
        whole: whole copies, by the question that a test asks about them.
        known: the plans of the whole copies.
        told: the earlier answers about each whole copy.
        scope: a whole copy of a scope, its plan, and the earlier answer about it.
        claim: the claim of a prefix with two streams.
        live: a live copy whose follower has died.
    """

    copies: dict[str, Copy]
    moves: dict[str, Copy]
    appends: dict[str, Copy]
    whole: dict[str, Copy]
    known: dict[str, StreamPlan]
    told: dict[str, Answer]
    scope: tuple[ScopeCopy, Plan, ScopeEnded]
    claim: Claim
    live: Copy


class Maker:
    """A maker of the tests' copies and streams.

    Args:
        folder: directory for files.
        server: the store.
        foreign: the official client, which writes the sources.
    """

    def __init__(self, folder: Path, server: Standalone, foreign: ForeignClient) -> None:
        self.uri = server.controller_uri
        self.name = f"idle-{uuid4().hex[:8]}"
        self._folder = folder
        self._foreign = foreign
        self._source = self.stream("source")

    def stream(self, name: str, *, events: int = EVENTS, seed: int = 0) -> tuple[str, str]:
        """Return a stream of two segments with events."""
        stream = (self.name, name)
        self._foreign.create(*stream, segments=2)
        self._foreign.write(*stream, events=events, keys=KEYS, seed=seed)
        return stream

    def copy(self, target: str, source: tuple[str, str] | None = None, **more: Any) -> Copy:
        """Return a copy of the common source, or of the given stream."""
        folder = self._folder / target
        folder.mkdir()
        return Copy(folder, self.uri, source or self._source, (self.name, target), **more)

    def cut_off(self, kind: str, where: str, stop: Stop) -> Copy:
        """Return a copy, or a move of its own source, that was interrupted at this point."""
        name = f"{kind}-{''.join(letter for letter in where if letter.isalpha())}"
        if kind == "move":
            made = self.copy(name, self.stream(f"of-{name}"), on_complete="Delete")
        else:
            made = self.copy(name, seal=where == "sealed")
        step, perform = stop
        drive(made, step, perform=perform)
        return made

    def append(self, number: int, where: str) -> Copy:
        """Return an append that was interrupted at this point, without Spark."""
        made = self.copy(f"append-{number}", exists="Append")
        self._foreign.create(*made.target, segments=3)
        self._foreign.write(*made.target, events=100, keys=KEYS, seed=1)
        cut_driver.drive(made, made.folder / "made", CUTS[where])
        return made

    def whole(self, what: str) -> tuple[Copy, StreamPlan]:
        """Return a whole copy and its plan."""
        made = self.copy(f"whole-{what}", seal=what == "sealed")
        job = job_of(made)
        with Stores(SETTINGS) as stores:
            planned = job.plan(stores)
        assert planned.plan is not None
        report = run_inline(made)
        assert report.outcome is Outcome.COPIED, report.error
        return made, planned.plan.streams[0]

    def live(self) -> Copy:
        """Return a live copy whose follower has died."""
        made = self.copy("live", self.stream("followed"), mode="Continuous")
        with Follower(made):
            self._foreign.write(*made.source, events=100, keys=KEYS, first=EVENTS)
            until("all is there", lambda: self._size(made.target) == self._size(made.source))
        self._foreign.create_group(self.name, LIVE_GROUP, "followed")
        self._foreign.read_group(self.name, LIVE_GROUP, events=EVENTS // 2)
        return made

    def _size(self, stream: tuple[str, str]) -> int:
        return sum(one.end for one in self._foreign.info(*stream).segments)

    def scope(self) -> tuple[ScopeCopy, Plan, ScopeEnded]:
        """Return a whole copy of a scope, its plan, and the answer about it."""
        scope = f"{self.name}-scope"
        self._foreign.create_scope(scope)
        for name in ("a", "b", "c"):
            self._foreign.create(scope, name, segments=2)
            self._foreign.write(scope, name, events=50, keys=KEYS)
        folder = self._folder / "scope"
        folder.mkdir()
        spec = {"target": {"scopePolicy": "CreateIfAbsent"}}
        copy = ScopeCopy(folder, self.uri, scope, f"{scope}-copy", spec=spec)
        planned = copy.judged(None)
        assert isinstance(planned, Planned)
        ended = copy.run("run")
        assert ended.code == 0, ended.err
        found = copy.judged(planned.plan)
        assert isinstance(found, ScopeEnded)
        return copy, planned.plan, found


def prefix_claim(store: PravegaStore, scope: str) -> Claim:
    """Return a claim of a prefix with two streams, one of which has an unknown age."""
    store.create_scope(scope)
    resource = Claimant(
        cluster=uuid4().hex, namespace="team", name="app", uid=str(uuid4()), created=_now()
    )
    claim = Claim(claimant=resource, scope=scope, prefix="app-")
    assert claims.make(claim, store, _now())
    claim = replace(claim, claimant=replace(resource, created=_now() - 60_000))
    for name in ("app-a", "app-b"):
        store.create_stream(StreamName(scope=scope, stream=name), StreamConfig())
    assert claims.look(claim, store).streams == ("app-a", "app-b")
    scaled = StreamName(scope=scope, stream="app-b")
    store.scale(scaled, [0], [KeyRange(low=0, high=0.5), KeyRange(low=0.5, high=1)])
    found = store.describe(scaled)
    assert found is not None
    store.truncate_stream(scaled, {segment.id: 0 for segment in found.tail})
    return claim


def _now() -> int:
    return round(time.time() * 1000)


@pytest.fixture(scope="module")
def scene(
    tmp_path_factory: pytest.TempPathFactory, standalone: Standalone, foreign: ForeignClient
) -> Scene:
    """Return the copies, moves and claims that the store has evicted from memory."""
    maker = Maker(tmp_path_factory.mktemp("idle"), standalone, foreign)
    copies = {where: maker.cut_off("copy", where, stop) for where, stop in COPYING.items()}
    moves = {where: maker.cut_off("move", where, stop) for where, stop in MOVING.items()}
    appends = {where: maker.append(number, where) for number, where in enumerate(CUTS)}
    made = {what: maker.whole(what) for what in ASKED}
    foreign.create_group(maker.name, GROUP, "source")
    foreign.read_group(maker.name, GROUP, events=EVENTS // 2)
    before = {what: told(copy, known) for what, (copy, known) in made.items()}
    scope = maker.scope()
    live = maker.live()
    with Stores(SETTINGS) as stores:
        store = cast("PravegaStore", stores[StoreAddress(uri=standalone.controller_uri)])
        claim = prefix_claim(store, f"{maker.name}-claims")
        source = StreamName(scope=maker.name, stream="source")
        wait_until_evicted(store, [(source, 0)])  # the store has one container
    return Scene(
        copies=copies,
        moves=moves,
        appends=appends,
        whole={what: copy for what, (copy, _) in made.items()},
        known={what: known for what, (_, known) in made.items()},
        told=before,
        scope=scope,
        claim=claim,
        live=live,
    )


@searches
@pytest.mark.parametrize("where", COPYING)
def test_a_copy_that_was_cut_off_goes_on(scene: Scene, where: str, foreign: ForeignClient) -> None:
    """An interrupted copy keeps its published and verified bytes, and repeats none."""
    copy = scene.copies[where]
    report = run_inline(copy)
    assert report.outcome in {Outcome.COPIED, Outcome.ALREADY_COMPLETE}, report.error
    assert events_in(foreign, copy.target) == events_in(foreign, copy.source)


@searches
@pytest.mark.parametrize("where", MOVING)
def test_a_move_that_was_cut_off_goes_on(scene: Scene, where: str, foreign: ForeignClient) -> None:
    """An interrupted move goes on: the target equals the source, which is deleted."""
    move = scene.moves[where]
    report = run_inline(move)
    assert report.outcome in {Outcome.COPIED, Outcome.ALREADY_COMPLETE}, report.error
    with pytest.raises(ForeignClientError):
        foreign.info(*move.source)
    assert events_in(foreign, move.target)[0] == EVENTS


@pytest.mark.parametrize("where", CUTS)
def test_an_append_that_was_cut_off_goes_on(
    scene: Scene, where: str, foreign: ForeignClient
) -> None:
    """An interrupted append goes on: the source follows the earlier bytes once."""
    copy = scene.appends[where]
    report = run_inline(copy)
    assert report.outcome in {Outcome.COPIED, Outcome.ALREADY_COMPLETE}, report.error
    read = foreign.read(*copy.target)
    assert (read.clean, read.events) == (True, EVENTS + 100)
    assert run_inline(copy).outcome is Outcome.ALREADY_COMPLETE


@pytest.mark.parametrize("what", ["requested", "sealed"])
def test_a_whole_copy_that_is_asked_for_again_is_whole(scene: Scene, what: str) -> None:
    """Checked against its plan, a whole copy has the same answer as before, sealed or not."""
    again = told(scene.whole[what], scene.known[what])
    assert again == scene.told[what]
    assert run_inline(scene.whole[what]).outcome is Outcome.ALREADY_COMPLETE


def test_a_whole_copy_that_is_applied_again_has_its_numbers_and_its_map(scene: Scene) -> None:
    """Without its plan, a whole copy's segments tell its bytes, events and positions."""
    again = told(scene.whole["applied"], None)
    assert isinstance(again, Complete)
    assert again == scene.told["applied"]
    assert (again.events, again.positions is None) == (EVENTS, False)


def test_a_whole_copy_is_verified(scene: Scene) -> None:
    """`sluice verify` pairs the segments by their attributes, and finds them equal."""
    ended = scene.whole["verified"].run("verify", "-o", "json")
    assert ended.code == 0, ended.err
    (found,) = ended.json["verifications"]
    assert (found["result"], found["pairedBy"]) == ("Equal", "Copy")
    assert found["source"]["events"] == found["target"]["events"] == EVENTS


def test_a_reader_group_goes_on_in_a_whole_copy(scene: Scene) -> None:
    """`sluice position` translates the group by the target's attributes, and makes it."""
    copy = scene.whole["read"]
    ended = copy.run("position", "--reader-group", GROUP, "--apply", "--as", "copied", "-o", "json")
    assert ended.code == 0, ended.err
    assert ended.json["applied"] == "Created"
    assert sum(one["offset"] for one in ended.json["offsets"]) > 0


def test_the_streams_of_a_scope_that_are_whole_are_judged_so(scene: Scene) -> None:
    """At the end of a long copy, the streams that were whole early are checked against plans."""
    copy, plan, before = scene.scope
    assert copy.judged(plan) == before
    assert {one.state for one in before.results} == {StreamState.COPIED}


def test_the_streams_of_a_prefix_stay_claimed(scene: Scene, standalone: Standalone) -> None:
    """Streams of a prefix stay claimed, even if only the claim's note names them."""
    with Stores(SETTINGS) as stores:
        store = stores[StoreAddress(uri=standalone.controller_uri)]
        found = claims.look(scene.claim, store)
        assert found.ownership is Ownership.OURS
        assert (found.streams, found.left_alone) == (("app-a", "app-b"), 0)
        assert claims.release(scene.claim, store, delete=True) == 2
        assert store.list_streams(scene.claim.scope) == []


def test_a_live_copy_goes_on(scene: Scene, foreign: ForeignClient) -> None:
    """A live copy goes on: it can be verified, translated, followed and cut over."""
    copy = scene.live
    assert is_live(copy)
    ended = copy.run("verify", "-o", "json")
    assert ended.code == 0, ended.err
    (found,) = ended.json["verifications"]
    assert (found["result"], found["source"]["events"]) == ("Equal", EVENTS + 100)
    moved = copy.run(
        "position", "--reader-group", LIVE_GROUP, "--apply", "--as", "onward", "-o", "json"
    )
    assert moved.code == 0, moved.err
    assert moved.json["applied"] == "Created"
    with Follower(copy) as follower:
        foreign.write(*copy.source, events=100, keys=KEYS, first=EVENTS + 100)
        assert foreign.seal(*copy.source)
        report = follower.ended()
    assert report.outcome is Outcome.COPIED, report.error
    assert report.events == EVENTS + 200
    assert events_in(foreign, copy.target) == events_in(foreign, copy.source)
