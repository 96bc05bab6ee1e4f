"""The looks and actions of a ScopeCopy with a schedule: a model store, a bucket, an API server."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

import pytest

from sluice.api.fields.common import GROUP
from sluice.core.reconcile.copies.actions import RecordScopeRun
from sluice.core.values.archive_layout import RUNS
from sluice.kube.jobs.manifests import controls_data
from support.engine.scope_drivers import damage, source_name
from support.engine.scope_requests import drop
from support.engine.sources import events_of
from support.kube.scope_bench import ScopeBench
from support.model import segment_name
from support.reconcile.copies import DONE, STALLED, message, reason, said
from support.reconcile.scope_archives import ARCHIVED

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sluice.core.reconcile.copies.actions import Decision

REQUESTED: Final = f"{GROUP}/requestedAt"
NIGHTLY: Final[dict[str, Any]] = {
    **ARCHIVED,
    "onExists": "Append",
    "schedule": {"cron": "@yearly"},
    "retention": {"keepLast": 2},
}


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    """Yield threads for the calls to stores."""
    with ThreadPoolExecutor(4) as found:
        yield found


@pytest.fixture
def nightly(threads: ThreadPoolExecutor, tmp_path: Path) -> ScopeBench:
    """Return a copy that archives three streams on a schedule and was not due yet."""
    bench = ScopeBench(threads, folder=tmp_path, **NIGHTLY)
    # Only requests make runs here: the last time of the schedule is before the resource was made.
    bench.body["metadata"]["creationTimestamp"] = "2999-01-01T00:00:00Z"
    return bench


def run(bench: ScopeBench, token: str, attempt: int) -> Decision:
    """Ask for a run, have its driver do it, and return the decision that reports its end."""
    bench.body["metadata"].setdefault("annotations", {})[REQUESTED] = token
    assert reason(bench.step()) == "Starting"
    bench.drive(attempt)
    return end(bench)


def end(bench: ScopeBench) -> Decision:
    """Go on until the run is over, and return the decision that reports it."""
    for _ in range(4):
        decision = bench.step()
        if decision.again != 0:
            return decision
    raise AssertionError("results or the record are published again and again")


def recorded(bench: ScopeBench) -> list[str]:
    """Return the records of the scope's runs."""
    return [one.name for one in bench.root.archive("backup/in").objects.list(RUNS)]


def runs(bench: ScopeBench) -> dict[str, int]:
    """Return the number of runs in each stream's archive."""
    names = bench.root.names("backup/in")
    heads = {name: bench.root.archive(f"backup/in/{name}").head() for name in names}
    return {name: len(head.runs) for name, head in heads.items() if head is not None}


def test_nothing_runs_before_it_is_due(nightly: ScopeBench) -> None:
    """The status says so, and the bucket stays empty."""
    decision = nightly.step()
    assert (said(decision), reason(decision)) == ({"Ready": "True"}, "Scheduled")
    assert runs(nightly) == {}


def test_each_run_archives_all_streams_and_leaves_nothing_else(nightly: ScopeBench) -> None:
    """Each archive has one run, and a record lists them. No log, note or finalizer stays."""
    decision = run(nightly, "one", 1)
    assert (said(decision), reason(decision)) == (DONE, "Succeeded")
    assert runs(nightly) == {"s000": 1, "s001": 1, "s002": 1}
    assert nightly.body["metadata"]["finalizers"] == []
    nightly.world.segments[segment_name(source_name(0), 0)].data += events_of([7])
    decision = run(nightly, "two", 2)
    assert message(decision).startswith("3 streams are archived in backup/in: 15 B")
    assert runs(nightly) == {"s000": 2, "s001": 2, "s002": 2}
    assert recorded(nightly) == [f"runs/scope-{number:016x}.json" for number in (1, 2)]
    assert nightly.body["status"]["run"] == 2
    objects = nightly.root.archive("backup/in").objects
    assert {one.name.split("/")[1] for one in objects.list() if "/" in one.name} <= {
        "heads",
        "runs",
        "data",
        "scope-0000000000000001.json",
        "scope-0000000000000002.json",
    }
    assert said(nightly.step()) == DONE
    assert nightly.body["status"]["attempts"] == 2


def test_old_records_go_with_the_retention(nightly: ScopeBench) -> None:
    """The driver gets the rules for the runs of each archive."""
    for number in (1, 2, 3):
        run(nightly, f"{number}", number)
    assert recorded(nightly) == [f"runs/scope-{number:016x}.json" for number in (2, 3)]
    spec = nightly.look().resource.spec
    assert '"keepLast": 2' in controls_data(spec)["controls.json"]


def test_a_stream_that_fails_is_named_and_the_next_run_has_it_again(nightly: ScopeBench) -> None:
    """The others are archived. The time of the last success stays."""
    run(nightly, "one", 1)
    before = nightly.body["status"]["lastSuccessTime"]
    nightly.body["metadata"]["annotations"][REQUESTED] = "two"
    nightly.world.segments[segment_name(source_name(1), 0)].data += events_of([7])
    nightly.step()
    drop(nightly.world, source_name(1))
    nightly.drive(2)
    decision = end(nightly)
    assert (said(decision), reason(decision)) == (STALLED, "PartiallySucceeded")
    assert "s001 (Source" in message(decision)
    assert runs(nightly) == {"s000": 2, "s001": 1, "s002": 2}
    assert nightly.body["status"]["lastSuccessTime"] == before
    assert nightly.body["status"]["run"] == 2
    assert nightly.body["metadata"]["finalizers"] == []
    decision = run(nightly, "three", 3)
    assert (said(decision), message(decision)[:9]) == (DONE, "2 streams")
    assert message(decision).endswith(
        "Run 3 of the scope is recorded. 1 stream is gone, or not selected any more, since the "
        "last complete run; the archives stay: s001."
    )


def test_a_record_is_made_once_whoever_dies(nightly: ScopeBench) -> None:
    """An operator that recorded the run and then lost its status finds the record."""
    nightly.body["metadata"].setdefault("annotations", {})[REQUESTED] = "one"
    nightly.step()
    nightly.drive()
    nightly.step()  # this step publishes results
    situation = nightly.look()
    answer = situation.world.answer
    nightly.perform(situation, RecordScopeRun(answer))  # type: ignore[arg-type]
    nightly.perform(situation, RecordScopeRun(answer))  # type: ignore[arg-type]
    assert (said(end(nightly)), len(recorded(nightly))) == (DONE, 1)


def test_a_driver_is_not_believed_that_a_run_is_recorded(nightly: ScopeBench) -> None:
    """A stream whose run is missing is named, and left out of the record of the run."""
    nightly.body["metadata"].setdefault("annotations", {})[REQUESTED] = "one"
    nightly.step()
    nightly.drive()
    lost = nightly.root.archive("backup/in/s001").objects
    lost.delete([one.name for one in lost.list()])
    decision = end(nightly)
    assert reason(decision) == "PartiallySucceeded"
    assert "s001 (TargetReplaced)" in message(decision)
    data = nightly.root.archive("backup/in").objects.get(recorded(nightly)[0])
    assert data is not None
    assert b'"failed":["s001"]' in data


def test_a_stream_that_was_made_again_fails_until_it_gets_another_path(nightly: ScopeBench) -> None:
    """The archive of the first one is not touched."""
    run(nightly, "one", 1)
    damage(nightly.world, 1)
    decision = run(nightly, "two", 2)
    assert reason(decision) == "PartiallySucceeded"
    assert "s001 (SourceReplaced)" in message(decision)
    assert runs(nightly) == {"s000": 2, "s001": 1, "s002": 2}
