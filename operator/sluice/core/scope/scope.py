"""A scope's copy as values: its plan as a whole, and the result of each stream."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from pydantic import Field

from sluice.core.scope.request import ScopeRequest
from sluice.core.values.model import Frozen
from sluice.core.values.trouble import Trouble

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_STREAMS: Final = 10_000
"""The most streams of one scope's copy: more do not fit into its plan."""

MOST_NAMES: Final = 100
"""Most streams that are named for one reason of leaving out; all of them are counted."""


class Why(StrEnum):
    """Reason why a stream is left out."""

    NOT_SELECTED = "NotSelected"
    """`spec.streams` does not select it."""
    INTERNAL = "Internal"
    """Its name begins with `_`, and no selector of `include` names it."""
    EPHEMERAL = "Ephemeral"
    """An EphemeralStream owns it."""
    OWN = "Own"
    """This very copy made it, in the scope that it copies."""
    EXISTS = "Exists"
    """Its target is there, and `onExists` is Skip."""
    LATER = "Later"
    """No run of its archive ends by `until`."""
    NOT_IN_RUN = "NotInRun"
    """The run of the scope that is restored did not add to its archive."""


class LeftOut(Frozen):
    """Streams that are left out for one reason: how many, and the first MOST_NAMES by name."""

    why: Why
    count: int
    streams: tuple[str, ...] = ()


class StreamState(StrEnum):
    """State of one stream of a scope."""

    PLANNED = "Planned"
    """It is to be copied."""
    FOLLOWED = "Followed"
    """What it had is copied, and it is followed. Logs do not record this."""
    COPIED = "Copied"
    """Its target is complete."""
    FAILED = "Failed"
    """It cannot be copied; the reason says why."""
    STOPPED = "Stopped"
    """It was not begun, since another one had failed (`failurePolicy: Stop`)."""


MOST_CUT: Final = 1024
"""Characters of the longest text of a cut in a result: a cut of about a hundred segments."""


class Ends(Frozen):
    """Where a stream ended that was followed, as texts of StreamCuts.

    Attributes:
        source, target: the position in each; None if it is not known any more, or longer than
            `MOST_CUT`.
    """

    source: str | None = None
    target: str | None = None


class StreamResult(Frozen):
    """Result of one stream of a scope, also before it is copied.

    Attributes:
        stream: its name in the source's scope.
        target: the name in the target's scope.
        state: how far it is.
        bytes, events: as planned; once it is copied, as copied. None if unknown.
        digest: the digest of the copied bytes; None before, and without verification. For an
            archived stream, the SHA-256 of the run's manifest.
        lost: bytes that its source had lost before they were read.
        trouble: why it failed.
        ended: why it was followed no more; None for a stream that was not followed.
        ends: where it ended then, as its target tells it; None before, and in logs.
    """

    stream: str
    target: str
    state: StreamState
    bytes: int = 0
    events: int | None = None
    digest: str | None = None
    lost: int = 0
    trouble: Trouble | None = None
    ended: str | None = Field(default=None, exclude_if=lambda value: value is None)
    ends: Ends | None = Field(default=None, exclude_if=lambda value: value is None)


class ScopePlan(Frozen):
    """Part of a plan of many streams that is about the scope as a whole.

    Attributes:
        scope_id: the identity of the whole copy.
        source, target: the scopes; for archives the path of their folder.
        make_scope: whether to make the target's scope if there is none.
        run: the run's number, from 1; a later run copies the streams that failed before.
        begin, end: when the first and the last stream's bounds were taken, in milliseconds since
            1970 by the planner's clock. So all bounds lie within that time.
        left_out: streams that are left out, by reason.
        tables: the key-value tables of the source's scope, which are not copied; the first
            MOST_NAMES.
        settled: results of streams that this run does not plan: copied in an earlier run, or
            impossible to copy.
        move: whether the source's scope is deleted at the end if it is empty.
        restored: the number of the scope's run that is restored; None for any other copy.
        series: see ScopeRequest.
        following: the request, if the streams are followed: streams that the scope gets later join
            by it. None for a copy that ends where its sources ended.
    """

    scope_id: str
    source: str
    target: str
    make_scope: bool = False
    run: int = Field(default=1, ge=1)
    begin: int
    end: int
    left_out: tuple[LeftOut, ...] = ()
    tables: tuple[str, ...] = ()
    settled: tuple[StreamResult, ...] = ()
    move: bool = False
    restored: int | None = Field(default=None, exclude_if=lambda value: value is None)
    series: str | None = Field(default=None, exclude_if=lambda value: value is None)
    following: ScopeRequest | None = Field(default=None, exclude_if=lambda value: value is None)


class Counts(Frozen):
    """Counts of a scope's streams by state, without the streams that are left out."""

    total: int = 0
    copied: int = 0
    failed: int = 0
    stopped: int = 0

    @property
    def left(self) -> int:
        """Number of streams that have not ended yet."""
        return self.total - self.copied - self.failed - self.stopped


def counts_of(results: Iterable[StreamResult]) -> Counts:
    """Count the streams by their state."""
    states = [result.state for result in results]
    return Counts(
        total=len(states),
        copied=states.count(StreamState.COPIED),
        failed=states.count(StreamState.FAILED),
        stopped=states.count(StreamState.STOPPED),
    )
