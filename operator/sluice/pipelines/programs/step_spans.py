"""Trace the steps of a plan, as a listener to its streams.

A stream's steps of one kind that follow one another are one span. A scope's streams have a span
each. How many spans there are is bounded: a process that goes on for months, or fails again and
again, must not flood a collector.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sluice import tracing
from sluice.core.copy.steps import Done
from sluice.core.workloads.plan import ScopeCopyPlan
from sluice.engine.scope.listener import SilentScope

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sluice.core.copy.steps import Step
    from sluice.core.scope.scope import StreamResult
    from sluice.core.workloads.plan import Plan
    from sluice.engine.scope.listener import ScopeListener
    from sluice.engine.tasks.work import Work
    from sluice.errors import SluiceError
    from sluice.tracing import Span

MOST: Final = 500
"""Spans of a process, beside those that are due later."""

SECONDS_EACH: Final = 60.0
"""Seconds after which there may be another span."""

LONGEST: Final = 3600.0
"""Seconds after which another span begins, so that a source that is followed is seen meanwhile."""

FOLLOWING: Final = frozenset({"Follow", "Prove", "Grow", "Skip"})
"""The steps that take turns while a source is followed. They are one span, `Follow`."""

STREAM: Final = "stream"
"""The span of one of a scope's streams."""


@dataclass(slots=True)
class _OpenSpan:
    """A span that goes on.

    Attributes:
        name: its name.
        span: the span; None if there were too many.
        since: when it began.
        steps: how many steps it has.
    """

    name: str
    span: Span | None
    since: float
    steps: int = 0

    def end(self, failed: str | None = None) -> None:
        """End it, with the reason why it failed, if it did."""
        if self.span is not None:
            self.span.note(steps=self.steps)
            if failed is not None:
                self.span.fail(failed)
            self.span.end()


class StepSpans:
    """A listener that makes spans of steps, and passes all on. Many threads may call it.

    Args:
        listener: the next listener.
        of_scope: whether each stream has one span in place of one for each kind of step.
        clock: returns seconds.
    """

    def __init__(
        self,
        listener: ScopeListener,
        *,
        of_scope: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._listener = listener
        self._of_scope = of_scope
        self._clock = clock
        self._parent = tracing.current()
        self._open: dict[str, _OpenSpan] = {}
        self._lock = threading.Lock()
        self._began = clock()
        self._made = 0

    def step(self, copy: Work[Any, Any], step: Step) -> None:
        """Note that a step begins: the span goes on, or another one begins."""
        kind = type(step).__name__
        name = STREAM if self._of_scope else "Follow" if kind in FOLLOWING else kind
        with self._lock:
            self._note(copy.plan, name, last=isinstance(step, Done))
        self._listener.step(copy, step)

    def retry(self, copy: Work[Any, Any], error: SluiceError, delay: float) -> None:
        """Note that a step failed, which ends its span, but not that of a scope's stream."""
        if not self._of_scope:
            self._end(copy.plan.target_name, error.reason)
        self._listener.retry(copy, error, delay)

    def ended(self, result: StreamResult) -> None:
        """Note the result of one of a scope's streams."""
        trouble = result.trouble
        self._end(result.target, None if trouble is None else trouble.reason)
        self._listener.ended(result)

    def joined(self, streams: Sequence[str]) -> None:
        """Pass on which streams join."""
        self._listener.joined(streams)

    def close(self, failed: str | None = None) -> None:
        """End all spans, with the reason why the run ended too early, if it did."""
        with self._lock:
            for one in self._open.values():
                one.end(failed)
            self._open.clear()

    def _note(self, plan: Any, name: str, *, last: bool) -> None:
        """Note a step of a stream. With the last step nothing goes on but the span of a stream."""
        now, known = self._clock(), self._open.get(plan.target_name)
        if known is not None and known.name == name and now - known.since < LONGEST:
            known.steps += 1
            return
        if known is not None:
            known.end()
            del self._open[plan.target_name]
        if self._of_scope or not last:
            span = self._begin(name, str(plan.target)) if self._may() else None
            self._open[plan.target_name] = _OpenSpan(name, span, now, steps=1)

    def _begin(self, name: str, target: str) -> Span:
        return tracing.begin(name, parent=self._parent, stream=target)

    def _end(self, target: str, failed: str | None) -> None:
        with self._lock:
            if (known := self._open.pop(target, None)) is not None:
                known.end(failed)

    def _may(self) -> bool:
        """Tell whether there may be another span, and count it."""
        if self._made >= MOST + (self._clock() - self._began) / SECONDS_EACH:
            return False
        self._made += 1
        return True


@contextmanager
def step_spans(plan: Plan, listener: ScopeListener | None) -> Iterator[ScopeListener | None]:
    """Yield a listener that also traces the steps of a plan during the block, if anything does."""
    if not tracing.is_on():
        yield listener
        return
    spans = StepSpans(listener or SilentScope(), of_scope=isinstance(plan, ScopeCopyPlan))
    try:
        yield spans
    except BaseException as error:
        spans.close(tracing.reason_of(error))
        raise
    spans.close()
