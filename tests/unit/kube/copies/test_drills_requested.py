"""Restore drills on request: the whole operator, on stores in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sluice.api.status.common import MOST_TOKEN
from sluice.kube.api.kinds import STREAM_STORE
from support.cases.resources import STORE, changed
from support.kube.drill_bench import DrillBench, started

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor


@pytest.fixture
def bench(threads: ThreadPoolExecutor) -> DrillBench:
    """Return an archive with a run, at rest."""
    return DrillBench(threads)


def test_a_request_begins_a_drill_before_its_time(bench: DrillBench) -> None:
    """Each value begins one drill like a scheduled one. The schedule's next time stays."""
    bench.step()
    next_time = bench.drill.next_time
    bench.ask_drill("now")
    for _ in range(3):
        bench.step()
    assert bench.copy is not None
    assert bench.drill.scheduled_time is None
    bench.copy_step()
    bench.restore()
    bench.copy_step()
    bench.finish()
    drill = bench.drill
    assert (drill.result, drill.last_handled_requested_at) == ("Passed", "now")
    assert (drill.next_time, bench.verdict[0]) == (next_time, "True")
    bench.step()
    assert (bench.copy, bench.drill) == (None, drill)


def test_a_request_waits_for_the_drill_that_goes_on(bench: DrillBench) -> None:
    """Another drill follows, since the first may have begun before the user's last run."""
    started(bench)
    bench.ask_drill("now")
    bench.step()
    assert (bench.drill.result, bench.drill.last_handled_requested_at) == (None, None)
    bench.restore()
    bench.copy_step()
    for _ in range(9):
        bench.step()
        if bench.drill.last_handled_requested_at is not None:
            break
        bench.copy_step()
    assert (bench.drill.result, bench.drill.last_handled_requested_at) == (None, "now")
    bench.copy_step()
    bench.restore()
    bench.copy_step()
    bench.finish()
    assert (bench.drill.result, bench.copy, bench.scratch()) == ("Passed", None, False)


def test_a_request_that_cannot_be_met_is_answered_at_once(bench: DrillBench) -> None:
    """Each request is answered with the reason. A scheduled drill goes on waiting."""
    bench.server.put(STREAM_STORE, changed(STORE, "spec.access", {"operations": ["Read"]}))
    for value in ("one", "two"):
        bench.ask_drill(value)
        bench.step()
        drill = bench.drill
        assert (drill.result, drill.last_handled_requested_at) == ("NotRun", value)
        assert "does not allow to Append" in (drill.message or "")
        assert bench.step().actions == ()
    bench.due()
    bench.step()
    bench.ask_drill("three")
    bench.step()
    assert bench.drill.last_handled_requested_at == "three"
    bench.server.put(STREAM_STORE, changed(STORE, "metadata.uid", "store"))
    bench.step()
    assert bench.copy is not None


def test_a_hostile_request_is_cut(bench: DrillBench) -> None:
    """The status keeps a bounded part of the request, by which the operator recognises it."""
    bench.ask_drill("\x1b[2J" + "x" * 10_000)
    bench.whole_drill()
    assert len(bench.drill.last_handled_requested_at or "") == MOST_TOKEN
    bench.step()
    assert bench.copy is None


def test_a_request_without_drills_or_while_suspended_begins_none(bench: DrillBench) -> None:
    """The request waits, and a drill begins with the field or when the archive goes on."""
    verify = bench.body["spec"].pop("verify")
    bench.ask_drill("now")
    bench.step()
    assert (bench.copy, "drill" in bench.body["status"]) == (None, False)
    bench.body["spec"] |= {"verify": verify, "suspend": True}
    bench.step()
    assert bench.copy is None
    bench.body["spec"]["suspend"] = False
    for _ in range(3):
        bench.step()
    assert bench.copy is not None
