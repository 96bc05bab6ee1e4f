"""Traces of looks: looks that share a trace, and untraced looks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sluice import tracing
from sluice.api.status.common import Condition
from sluice.api.status.copy_status import StreamCopyStatus
from sluice.api.status.ephemeral_status import EphemeralStreamStatus
from sluice.core.reconcile.copies.actions import AddFinalizer, DropPlan, StartJob
from sluice.kube.loop.traces import Traces
from support.reconcile.copies import PLAN

if TYPE_CHECKING:
    from support.kube.collector import Collector

READY = Condition(
    type="Ready",
    status="Unknown",
    reason="Starting",
    message="words of a tenant",
    last_transition_time="2026-01-02T03:04:05Z",  # type: ignore[arg-type]
)
BEGIN = StartJob(1, PLAN, follower=False)


@dataclass
class Decided:
    """A decision with a status and actions."""

    status: Any
    actions: tuple[Any, ...]
    again: float | None = None


def look(made: Traces, attempts: int | None, *actions: Any, uid: str = "u", name: str = "a") -> str:
    """Trace a look at a copy, and return the context in which it acted."""
    status: Any = EphemeralStreamStatus(conditions=(READY,))
    if attempts is not None:
        status = StreamCopyStatus(attempts=attempts, conditions=(READY,))
    body = {"kind": "StreamCopy", "metadata": {"namespace": "team", "name": name, "uid": uid}}
    notes = {"annotations": {"traceparent": f"00-{'1' * 32}-{'2' * 16}-01"}}
    body["metadata"] |= notes  # type: ignore[operator]
    with made.acting(body, Decided(status, actions), tracing.now()):
        return tracing.current()


def trace(context: str) -> str:
    """Return the trace of a context."""
    return context.split("-")[1]


def test_looks_of_one_attempt_are_one_trace(traces: Collector) -> None:
    """The trace has the looks that prepare it, make its Job and end it."""
    made = Traces()
    with tracing.started("test"):
        first = look(made, 0, AddFinalizer())
        begun, ended = look(made, 1, BEGIN), look(made, 1, DropPlan())
        second, other = look(made, 2, BEGIN), look(made, 1, BEGIN, name="b")
    assert trace(first) == trace(begun) == trace(ended)
    assert len({trace(one) for one in (first, second, other)}) == 3
    assert "1" * 32 not in {trace(one) for one in (first, begun, second, other)}
    root = next(one for one in traces.spans if first.split("-")[2] == one.id)
    assert root.parent == ""
    below = {one.id for one in traces.below(root) if one.name == "reconcile"}
    assert below == {one.split("-")[2] for one in (begun, ended)}


def test_a_copy_that_is_made_anew_or_gone_has_another_trace(traces: Collector) -> None:
    """This holds for the same name."""
    made = Traces()
    with tracing.started("test"):
        first, again = look(made, 1, BEGIN), look(made, 1, BEGIN, uid="v")
        made.forget("team", "a")
        found = [first, again, look(made, 1, DropPlan(), uid="v")]
    assert len({trace(one) for one in found}) == 3
    assert traces.spans


def test_a_kind_without_attempts_has_a_trace_a_look(traces: Collector) -> None:
    """An EphemeralStream may live for years."""
    made = Traces()
    with tracing.started("test"):
        assert trace(look(made, None, AddFinalizer())) != trace(look(made, None, AddFinalizer()))
    assert len(traces.spans) == 4


def test_a_look_without_actions_is_not_traced(traces: Collector) -> None:
    """Most looks find no action."""
    with tracing.started("test"):
        assert look(Traces(), 1) == ""
    assert traces.spans == []


def test_a_look_says_what_it_was_about(traces: Collector) -> None:
    """It has names and the reason, but not the condition's message."""
    with tracing.started("test"):
        look(Traces(), 1, BEGIN)
    assert traces.only("reconcile").attributes == {
        "sluice.kind": "StreamCopy",
        "sluice.namespace": "team",
        "sluice.resource": "a",
        "sluice.uid": "u",
        "sluice.attempt": 1,
        "sluice.reason": "Starting",
    }
    assert "words" not in str(traces.spans)


def test_without_tracing_nothing_is_kept() -> None:
    """The memory of an operator that is not traced does not grow."""
    made = Traces()
    look(made, 1, BEGIN)
    assert made._known == {}
