"""Moves of streams: sealed late, drained and deleted. The Java client writes and reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from localstore import ForeignClient, ForeignClientError, Standalone
from sluice.core.copy.steps import (
    ConfigureTarget,
    DeleteJournal,
    DeleteSource,
    DrainSource,
    Publish,
    Transfer,
)
from sluice.engine.copy.query import abandon, ask
from sluice.engine.copy.report import Outcome
from sluice.pipelines.programs.stores import Stores
from support.command.sluice_command import Copy
from support.search import few
from support.store.inline import SETTINGS, drive, job_of, leftovers, run_inline, staging_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sluice.core.copy.steps import Step

EVENTS = 400


@pytest.fixture
def move(tmp_path: Path, standalone: Standalone, scope: str, foreign: ForeignClient) -> Copy:
    """Return a move of a stream of two segments and 400 events."""
    foreign.create(scope, "source", segments=2)
    foreign.write(scope, "source", events=EVENTS, keys=8)
    made = Copy(tmp_path, standalone.controller_uri, (scope, "source"), (scope, "target"))
    made.on_complete = "Delete"
    return made


def assert_moved(
    move: Copy, standalone: Standalone, foreign: ForeignClient, original: tuple[int, str]
) -> None:
    """Check that the source is gone, the target equals it, and a further run does nothing."""
    with pytest.raises(ForeignClientError):
        foreign.info(*move.source)
    copied = foreign.read(*move.target)
    assert copied.clean
    assert (copied.events, copied.digest) == original
    assert staging_of(move, standalone) == []
    assert foreign.info(*move.target).sealed is False
    again = run_inline(move)
    assert again.outcome is Outcome.ALREADY_COMPLETE


def read(foreign: ForeignClient, stream: tuple[str, str]) -> tuple[int, str]:
    """Return the events of a stream and their digest, as the Java client reads them."""
    found = foreign.read(*stream)
    return found.events, found.digest


def test_a_stream_is_moved(move: Copy, standalone: Standalone, foreign: ForeignClient) -> None:
    """`sluice run` copies the stream and deletes the source. Writers go on in the target."""
    original = read(foreign, move.source)
    ended = move.run("run", "--tasks", "1", "-o", "json")
    assert ended.code == 0, ended.err
    assert ended.json[0]["outcome"] == "Copied"
    assert_moved(move, standalone, foreign, original)
    foreign.write(*move.target, events=100, keys=8, first=EVENTS)
    assert foreign.read(*move.target).clean


@pytest.mark.exhaustive
def test_what_comes_meanwhile_is_moved_too(
    move: Copy, standalone: Standalone, foreign: ForeignClient
) -> None:
    """After the seal, the move drains later bytes and the segments of later scale events."""
    drive(move, DrainSource, perform=False)
    foreign.write(*move.source, events=200, keys=8, first=EVENTS)
    foreign.scale(*move.source, segments=[0], ranges=[(0.0, 0.2), (0.2, 0.5)])
    foreign.write(*move.source, events=200, keys=8, first=EVENTS + 200)
    original = read(foreign, move.source)
    assert original[0] == EVENTS + 400
    report = run_inline(move)
    assert report.outcome is Outcome.COPIED, report.error
    assert report.events == EVENTS + 400
    assert_moved(move, standalone, foreign, original)


@pytest.mark.parametrize(
    ("step", "perform"),
    [
        pytest.param(Transfer, True, id="before the seal", marks=pytest.mark.exhaustive),
        pytest.param(DrainSource, True, id="sealed and written down"),
        pytest.param(Publish, False, id="before publishing", marks=pytest.mark.exhaustive),
        pytest.param(Publish, True, id="published", marks=pytest.mark.exhaustive),
        pytest.param(ConfigureTarget, True, id="whole, source there", marks=pytest.mark.exhaustive),
        pytest.param(DeleteSource, True, id="source deleted"),
        pytest.param(
            DeleteJournal, False, id="before the journal goes", marks=pytest.mark.exhaustive
        ),
    ],
)
def test_a_move_cut_off_anywhere_is_finished(
    move: Copy, standalone: Standalone, foreign: ForeignClient, step: type[Step], *, perform: bool
) -> None:
    """The next driver finds the finished steps in the stores, and does the others once."""
    original = read(foreign, move.source)
    drive(move, step, perform=perform)
    report = run_inline(move)
    assert report.outcome in {Outcome.COPIED, Outcome.ALREADY_COMPLETE}, report.error
    assert_moved(move, standalone, foreign, original)


@pytest.mark.exhaustive
def test_a_seal_without_its_record_is_found(
    move: Copy, standalone: Standalone, foreign: ForeignClient
) -> None:
    """If a driver dies between the seal and its record, the next one finishes the move."""
    drive(move, DrainSource, perform=False)
    original = read(foreign, move.source)
    foreign.seal(*move.source)
    assert run_inline(move).outcome is Outcome.COPIED
    assert_moved(move, standalone, foreign, original)


def test_a_source_made_again_is_left_alone(move: Copy, foreign: ForeignClient) -> None:
    """Another stream of the source's name is neither sealed nor deleted."""
    drive(move, DrainSource, perform=False)
    foreign.delete(*move.source)
    foreign.create(*move.source, segments=2)
    foreign.write(*move.source, events=10)
    report = run_inline(move)
    assert report.error is not None
    assert report.error.reason == "SourceReplaced"
    assert foreign.info(*move.source).sealed is False
    assert foreign.read(*move.source).events == 10


@pytest.mark.exhaustive
def test_a_stream_made_in_the_sources_place_is_left_alone(
    move: Copy, standalone: Standalone, foreign: ForeignClient
) -> None:
    """Once the target is whole, a new stream of the source's name is not deleted."""
    drive(move, DeleteSource, perform=True)
    foreign.create(*move.source, segments=1)
    foreign.write(*move.source, events=10)
    report = run_inline(move)
    assert report.outcome is Outcome.COPIED, report.error
    assert foreign.read(*move.source).events == 10
    assert staging_of(move, standalone) == []


def test_what_the_target_lost_keeps_the_source(
    move: Copy, standalone: Standalone, foreign: ForeignClient
) -> None:
    """The source stays if the target is no longer whole when the source is to be deleted."""
    drive(move, DeleteSource, perform=False)
    foreign.delete(*move.target)
    report = run_inline(move)
    assert report.outcome is Outcome.FAILED
    assert foreign.info(*move.source).sealed is True
    assert foreign.read(*move.source).events == EVENTS
    assert leftovers(move, standalone) == [] or not report.cleaned


@pytest.mark.parametrize(
    ("spoil", "field"),
    few(
        [
            (lambda move: setattr(move, "ranges", [{"from": {"at": "Head"}}]), "sourceOnComplete"),
            (lambda move: setattr(move, "more", [(("a", "b"), [])]), "sourceOnComplete"),
            (lambda move: setattr(move, "exists", "Append"), "sourceOnComplete"),
            (lambda move: setattr(move, "source", (move.source[0], "_source")), "sourceOnComplete"),
            (lambda move: setattr(move, "target", move.source), "target"),
        ],
        2,
    ),
    ids=["ranges", "several", "append", "internal", "itself"],
)
def test_what_cannot_be_moved_is_refused(
    move: Copy, foreign: ForeignClient, spoil: Callable[[Copy], None], field: str
) -> None:
    """An impossible move is refused by its field before anything is made or sealed."""
    source = move.source
    spoil(move)
    ended = move.run("plan")
    assert ended.code == 2
    assert f"spec.{field}" in ended.err
    assert foreign.info(*source).sealed is False


def test_a_move_is_not_made_without_verification(move: Copy, foreign: ForeignClient) -> None:
    """A move with --no-verify is refused, since only compared bytes may be deleted."""
    ended = move.run("run", "--no-verify", "--tasks", "1", "-o", "json")
    assert ended.code == 2
    assert ended.json[0]["error"]["field"] == "spec.sourceOnComplete"
    assert foreign.info(*move.source).sealed is False


def test_a_store_that_forbids_deleting_is_obeyed(move: Copy, foreign: ForeignClient) -> None:
    """A StreamStore without Delete in its access refuses the move."""
    move.operations = ["Read", "Create", "Append"]
    ended = move.run("plan")
    assert ended.code == 2
    assert "does not allow to Delete" in ended.err
    assert foreign.info(*move.source).sealed is False


@pytest.mark.exhaustive
def test_an_abandoned_move_keeps_its_source(move: Copy, foreign: ForeignClient) -> None:
    """Before publication an abort leaves the sealed source. Later it finishes the target."""
    drive(move, Publish, perform=False)
    job = job_of(move)
    (address,) = job.sources
    with Stores(SETTINGS) as stores:
        request, target = job.request, stores[job.target]
        done = abandon(request, sources=[stores[address]], target=target)
        assert "is sealed and stays so" in done
        assert foreign.read(*move.source).events == EVENTS
        drive(move, Publish, perform=True)
        done = abandon(request, sources=[stores[address]], target=target)
        assert done == "publishing had begun and was finished"
        answer = ask(
            request,
            sources=[(address, stores[address])],
            target=(job.target, target),
            known=None,
        )
        assert answer.events == EVENTS
    assert foreign.info(*move.source).sealed is True
    assert foreign.read(*move.target).events == EVENTS
