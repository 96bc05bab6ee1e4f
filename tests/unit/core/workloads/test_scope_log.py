from typing import Any

import pytest

from sluice.core.scope.scope import Counts, ScopePlan, StreamResult, StreamState
from sluice.core.values.model import StreamName
from sluice.core.values.trouble import Trouble
from sluice.core.workloads import scope_log
from sluice.core.workloads.plan import Plan
from sluice.core.workloads.scope_log import ScopeState, fold
from sluice.errors import Category, JournalDamaged
from support.engine.plans import segment_plan, stream_plan, whole_plan, whole_scope

SETTLED = StreamResult(stream="old", target="old", state=StreamState.COPIED, bytes=3)


def plan_of(*streams: str, run: int = 1, begin: int = 5) -> Plan:
    """Return the plan of a run over these streams."""
    plans = [
        stream_plan(
            segment_plan(100),
            source=StreamName(scope="in", stream=name),
            target=StreamName(scope="out", stream=f"to-{name}"),
        )
        for name in streams
    ]
    scope = ScopePlan(
        scope_id="5c" * 16,
        source="in",
        target="out",
        run=run,
        begin=begin,
        end=9,
        settled=(SETTLED,),
    )
    return whole_scope(scope, *plans)


PLAN = plan_of("a", "b", "c")
COPIED = StreamResult(
    stream="a", target="to-a", state=StreamState.COPIED, bytes=100, events=1, digest="dd"
)
TROUBLE = Trouble(reason="SourceReplaced", category=Category.INTEGRITY, message="no", remedy="do")
FAILED = StreamResult(stream="b", target="to-b", state=StreamState.FAILED, trouble=TROUBLE)
BEGIN = scope_log.plan_record(PLAN)


def test_an_empty_log_says_nothing() -> None:
    """A log without records has no state."""
    assert fold([]) is None


def test_results_are_found_by_their_streams_places() -> None:
    """A stream without a result is planned. Settled streams, which have no place, come last."""
    state = fold([BEGIN, scope_log.results_record(1, {0: COPIED}), _results({1: FAILED})])
    assert state == ScopeState(PLAN, {0: COPIED, 1: FAILED})
    assert not state.is_over
    planned = StreamResult(
        stream="c", target="to-c", state=StreamState.PLANNED, bytes=100, events=1
    )
    assert state.streams == (COPIED, FAILED, planned, SETTLED)
    assert state.counts == Counts(total=4, copied=2, failed=1)
    assert state.counts.left == 1


def test_a_run_is_over_when_all_streams_have_ended() -> None:
    """Failed streams count as ended."""
    third = COPIED.model_copy(update={"stream": "c", "target": "to-c"})
    state = fold([BEGIN, _results({0: COPIED, 1: FAILED, 2: third})])
    assert state is not None
    assert state.is_over


def test_a_run_that_is_stopped_is_over() -> None:
    """Streams that had not ended by then are stopped."""
    state = fold([BEGIN, _results({0: COPIED}), scope_log.stopped_record(1)])
    assert state is not None
    assert state.is_over
    assert [str(result.state) for result in state.streams] == [
        "Copied",
        "Stopped",
        "Stopped",
        "Copied",
    ]


def test_the_first_result_of_a_stream_counts() -> None:
    """Another driver's later result is ignored."""
    state = fold([BEGIN, _results({0: COPIED}), _results({0: FAILED})])
    assert state is not None
    assert state.results == {0: COPIED}


def test_the_first_plan_holds_until_its_run_is_over() -> None:
    """Until then, other plans of the same run or of later runs are ignored."""
    again = scope_log.plan_record(plan_of("a", begin=6))
    later = scope_log.plan_record(plan_of("b", run=2))
    state = fold([BEGIN, again, later])
    assert state == ScopeState(PLAN)
    over = fold([scope_log.stopped_record(1), again, later], state)
    assert over == ScopeState(plan_of("b", run=2))


def test_what_a_late_driver_says_of_an_earlier_run_is_passed_over() -> None:
    """Results and stops of an earlier run are ignored: their places belong to another plan."""
    later = scope_log.plan_record(plan_of("b", run=2))
    late = [_results({2: COPIED}), scope_log.stopped_record(1)]
    state = fold([BEGIN, scope_log.stopped_record(1), later, *late])
    assert state == ScopeState(plan_of("b", run=2))


@pytest.mark.parametrize("at", range(6))
def test_a_log_may_be_read_in_pieces(at: int) -> None:
    """Folding the later records onto an earlier state gives the state of all records."""
    records = [
        BEGIN,
        _results({0: COPIED}),
        _results({1: FAILED}),
        scope_log.stopped_record(1),
        scope_log.plan_record(plan_of("b", run=2)),
    ]
    assert fold(records[at:], fold(records[:at])) == fold(records)


@pytest.mark.parametrize(
    "damage",
    [
        {"record": "plan", "plan": "no base64"},
        {"record": "plan", "plan": "AAAA"},
        {"record": "plan", "plan": 5},
        scope_log.plan_record(whole_plan(stream_plan(segment_plan(1)))),  # type: ignore[arg-type]
        {"record": "results", "run": 1, "results": [[3, {}]]},
        {"record": "results", "run": 1, "results": [[9, COPIED.model_dump(mode="json")]]},
        {"record": "results", "run": 1, "results": [["0", COPIED.model_dump(mode="json")]]},
        {"record": "results", "run": 1, "results": [[True, COPIED.model_dump(mode="json")]]},
        {"record": "results", "run": 1, "results": [[[], COPIED.model_dump(mode="json")]]},
        {"record": "results", "run": 1, "results": [[0, SETTLED.model_dump(mode="json")], 4]},
        {
            "record": "results",
            "run": 1,
            "results": [[0, {"stream": "a", "target": "b", "state": "Planned"}]],
        },
        {"record": "stopped"},
        {"record": "else"},
        {},
    ],
)
def test_a_damaged_record_is_named(damage: dict[str, Any]) -> None:
    """A damaged or unknown record raises JournalDamaged."""
    with pytest.raises(JournalDamaged, match="log of a scope"):
        fold([BEGIN, damage])


def test_a_log_that_begins_with_no_plan_is_damaged() -> None:
    """Without a plan, no other record has a meaning."""
    with pytest.raises(JournalDamaged):
        fold([scope_log.stopped_record(1)])


def _results(results: dict[int, StreamResult]) -> dict[str, Any]:
    return scope_log.results_record(1, results)
