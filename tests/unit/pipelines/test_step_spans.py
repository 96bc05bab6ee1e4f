"""Spans of a plan's steps: their names and their number."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from sluice import tracing
from sluice.core.copy.steps import Done, Follow, Prove, Publish, Sweep, Transfer, Verify
from sluice.core.scope.scope import StreamResult, StreamState
from sluice.core.values.trouble import Trouble
from sluice.engine.scope.listener import SilentScope
from sluice.errors import StoreUnavailable
from sluice.pipelines.programs import step_spans
from sluice.pipelines.programs.step_spans import StepSpans
from support.engine.plans import segment_plan, stream_plan
from support.engine.sources import ManualClock
from support.reconcile.copies import PLAN
from support.reconcile.requests import scope_plan

if TYPE_CHECKING:
    from sluice.core.copy.steps import Step
    from support.kube.collector import Collector

FOLLOW, PROVE = Follow(((0, 1),)), Prove(((0, 1),))
TARGET = stream_plan(segment_plan(1)).target


class Journey:
    """Steps of streams that a test reports to the listener."""

    def __init__(self, *, of_scope: bool = False) -> None:
        self.clock = ManualClock()
        self.spans = StepSpans(SilentScope(), of_scope=of_scope, clock=self.clock.monotonic)

    def go(self, *steps: Step, number: int = 0) -> None:
        """Report steps of a stream."""
        for step in steps:
            self.spans.step(self._work(number), step)

    def fail(self, number: int = 0) -> None:
        """Report a failure of a stream's step."""
        self.spans.retry(self._work(number), StoreUnavailable("words of a store"), 1.0)

    @staticmethod
    def _work(number: int) -> Any:
        target = TARGET.model_copy(update={"stream": f"t{number}"})
        return SimpleNamespace(plan=SimpleNamespace(target=target, target_name=target.stream))


def test_steps_of_one_kind_in_a_row_are_one_span(traces: Collector) -> None:
    """The span has their number. The final check without a step has no span."""
    with tracing.started("test"), tracing.span("driver"):
        journey = Journey()
        journey.go(Transfer(()), Transfer(()), Verify(()), Publish(()), Transfer(()), Done(""))
        journey.spans.close("Unexpected")
    below = traces.below(traces.only("driver"))
    got = [(one.name, one.attributes["sluice.steps"]) for one in below]
    assert got == [("Transfer", 2), ("Verify", 1), ("Publish", 1), ("Transfer", 1)]
    assert {one.attributes["sluice.stream"] for one in below} == {"out/t0"}
    assert [one for one in traces.spans if one.failed] == []


def test_a_step_that_fails_has_the_reason_and_no_words(traces: Collector) -> None:
    """The next try is a span of its own. A span open at a block's end gets its reason."""
    with tracing.started("test"), tracing.span("driver"):
        journey = Journey()
        journey.go(Transfer(()))
        journey.fail()
        journey.go(Transfer(()))
        journey.spans.close("Terminated")
    assert [one.failed for one in traces.spans] == ["StoreUnavailable", "Terminated", None]
    assert "words" not in str(traces.spans)


def test_following_is_one_span_an_hour(traces: Collector) -> None:
    """This holds however often its steps take turns."""
    with tracing.started("test"):
        journey = Journey()
        for _ in range(3 * 360):
            journey.go(FOLLOW, PROVE)
            journey.clock.now += 10
        journey.spans.close()
    assert [one.name for one in traces.spans] == ["Follow"] * 3
    assert sum(one.attributes["sluice.steps"] for one in traces.spans) == 2 * 3 * 360


def test_spans_are_bounded_and_come_back(traces: Collector) -> None:
    """A store that fails for days causes some hundred spans, and then one a minute."""
    most = step_spans.MOST
    with tracing.started("test"):
        journey = Journey()
        for _ in range(2 * most):
            journey.go(Transfer(()))
            journey.fail()
        journey.clock.now += 3 * step_spans.SECONDS_EACH
        journey.go(*[Transfer(()), Verify(())] * 10)
        journey.spans.close()
    assert len(traces.spans) == most + 3


def test_a_stream_of_a_scope_is_one_span(traces: Collector) -> None:
    """The span lasts from its first step to its result, retries included."""
    trouble = Trouble.of(StoreUnavailable("words of a store"))
    with tracing.started("test"), tracing.span("driver"):
        journey = Journey(of_scope=True)
        for number in (0, 1, 2):
            journey.go(Transfer(()), Verify(()), number=number)
        journey.fail(1)
        journey.go(Transfer(()), number=1)
        journey.go(Sweep(()), Done(""))
        for number, failed in enumerate((None, trouble)):
            state = StreamState.FAILED if failed else StreamState.COPIED
            journey.spans.ended(
                StreamResult(stream="s", target=f"t{number}", state=state, trouble=failed)
            )
        journey.spans.close("Terminated")
    below = traces.below(traces.only("driver"))
    assert {one.name for one in below} == {"stream"}
    got = {one.attributes["sluice.stream"]: one for one in below}
    assert {name: one.failed for name, one in got.items()} == {
        "out/t0": None,
        "out/t1": "StoreUnavailable",
        "out/t2": "Terminated",
    }
    assert [one.attributes["sluice.steps"] for one in got.values()] == [4, 3, 2]


def test_a_process_that_is_not_traced_has_its_own_listener() -> None:
    """No layer stands between the steps and their listener."""
    own = SilentScope()
    with step_spans.step_spans(PLAN, own) as heard:
        assert heard is own


def test_streams_of_scopes_have_a_span_each(traces: Collector) -> None:
    """The plan's kind decides."""
    with tracing.started("test"):
        for plan in (PLAN, scope_plan()):
            with step_spans.step_spans(plan, None) as heard:
                assert heard is not None
                heard.step(Journey._work(0), Transfer(()))
    assert [one.name for one in traces.spans] == ["Transfer", "stream"]
