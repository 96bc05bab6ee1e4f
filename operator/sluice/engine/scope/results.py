"""Keep the results of a scope's streams while it runs, and record them in the scope's log."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from sluice.core.scope.scope import StreamState
from sluice.core.workloads.scope_log import ScopeState
from sluice.engine.scope.report import may_pass
from sluice.errors import CopyAborted, NoSuchSegment

if TYPE_CHECKING:
    from sluice.core.scope.scope import StreamResult
    from sluice.core.values.trouble import Trouble
    from sluice.core.workloads.plan import ScopeCopyPlan
    from sluice.engine.scope.log import ScopeRecords

_GONE: Final = (NoSuchSegment, CopyAborted)
"""Errors that say that the copy was ended or aborted. Each stream finds out by itself which."""


class Results:
    """The results of a scope's streams, by the places in its plan. Several threads may use it.

    Args:
        plan: the plan that counts.
        log: the scope's log. Results that it has loaded are taken over.
    """

    def __init__(self, plan: ScopeCopyPlan, log: ScopeRecords) -> None:
        self._plan = plan
        self._log = log
        self._writing = threading.Lock()
        self._lock = threading.Lock()
        # With this lock:
        state = log.loaded
        self._results = {} if state is None else dict(state.results)
        self._unwritten: dict[int, StreamResult] = {}
        self._given_up: dict[int, Trouble] = {}
        self._in_a_row = 0
        ended = (*self._results.values(), *plan.scope.settled)
        self._failed = any(result.state is StreamState.FAILED for result in ended)

    def extend(self, plan: ScopeCopyPlan) -> None:
        """Take in that streams have joined the plan."""
        with self._lock:
            self._plan = plan

    def revived(self, place: int) -> None:
        """Note that a stream that was given up for now goes on."""
        with self._lock:
            self._given_up.pop(place, None)

    @property
    def has_failed(self) -> bool:
        """Whether a stream has failed, in this run or before it."""
        return self._failed

    @property
    def left(self) -> list[int]:
        """The places of the streams without a result."""
        return [place for place in range(len(self._plan.items)) if place not in self._results]

    @property
    def trouble(self) -> Trouble | None:
        """The trouble of the first stream that was given up for now; None if there is none."""
        return next(iter(self._given_up.values()), None)

    @property
    def given_up(self) -> frozenset[int]:
        """The places of the streams that were given up for now."""
        with self._lock:
            return frozenset(self._given_up)

    @property
    def is_whole(self) -> bool:
        """Whether every stream is copied."""
        return all(one.state is StreamState.COPIED for one in self.all(stopped=False))

    def all(self, *, stopped: bool) -> tuple[StreamResult, ...]:
        """Return the results of all streams, with the trouble of those given up for now.

        Args:
            stopped: whether no other stream is begun.
        """
        written = self._log.loaded
        with self._lock:
            if written is not None and written.run == self._plan.scope.run:
                self._results.update(written.results)
            results, given_up = dict(self._results), dict(self._given_up)
        return tuple(
            result.model_copy(update={"trouble": given_up[place]})
            if place in given_up and result.state is StreamState.PLANNED
            else result
            for place, result in enumerate(ScopeState(self._plan, results, stopped).streams)
        )

    def add(self, place: int, result: StreamResult) -> bool:
        """Take in what came of a stream. Tell whether this is final: a trouble may pass."""
        with self._lock:
            if result.trouble is not None and may_pass(result.trouble):
                self._given_up[place] = result.trouble
                self._in_a_row += 1
                return False
            self._given_up.pop(place, None)  # where it was begun anew since
            self._results[place] = self._unwritten[place] = result
            self._in_a_row = 0
            self._failed = self._failed or result.state is StreamState.FAILED
            return True

    def moved(self) -> None:
        """Note that a stream has got on: the stores answer."""
        with self._lock:
            self._in_a_row = 0

    def gave_up(self, most: int) -> bool:
        """Tell whether so many streams in a row were given up. If so, they are counted anew."""
        with self._lock:
            if self._in_a_row < most:
                return False
            self._in_a_row = 0
            return True

    def write(self) -> None:
        """Record the results that are not recorded yet. Results that come meanwhile wait."""
        with self._writing:
            with self._lock:
                results = dict(self._unwritten)
            if not results:
                return
            with suppress(*_GONE):
                self._log.ended(results)
            with self._lock:
                for place in results:
                    del self._unwritten[place]

    def write_stopped(self) -> None:
        """Record that no other stream is begun."""
        with suppress(*_GONE):
            self._log.stopped()
