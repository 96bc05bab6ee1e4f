"""A scope's copy as values: what its plan says of the whole, and what came of each stream."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from pydantic import Field

from sluice.core.values.model import Frozen
from sluice.core.values.trouble import Trouble

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_STREAMS: Final = 10_000
"""The most streams of one scope's copy: more do not fit into its plan."""

MOST_NAMES: Final = 100
"""How many streams that are left out for one reason are named; all of them are counted."""


class Why(StrEnum):
    """Why a stream is left out."""

    NOT_SELECTED = "NotSelected"
    """`spec.streams` does not select it."""
    INTERNAL = "Internal"
    """Its name begins with `_`, and nothing that is included names it."""
    EPHEMERAL = "Ephemeral"
    """An EphemeralStream owns it."""
    OWN = "Own"
    """This very copy made it, in the scope that it copies."""
    EXISTS = "Exists"
    """Its target is there, and `onExists` is Skip."""
    LATER = "Later"
    """No run of its archive holds it up to `until` already."""


class LeftOut(Frozen):
    """Streams that are left out for one reason: how many, and the first MOST_NAMES by name."""

    why: Why
    count: int
    streams: tuple[str, ...] = ()


class StreamState(StrEnum):
    """How far one stream of a scope is."""

    PLANNED = "Planned"
    """It is to be copied."""
    COPIED = "Copied"
    """Its target is whole."""
    FAILED = "Failed"
    """It cannot be copied; the reason says why."""
    STOPPED = "Stopped"
    """It was not begun, since another one had failed (`failurePolicy: Stop`)."""


class StreamResult(Frozen):
    """What is known of one stream of a scope.

    Attributes:
        stream: its name in the source's scope.
        target: the name in the target's scope.
        state: how far it is.
        bytes, events: planned, and once it is copied, copied; None where nobody can tell.
        digest: of what was copied; None before, and without verification. Of what was archived it
            is the SHA-256 of the run's manifest.
        lost: bytes that its source had lost before they were read.
        trouble: why it failed.
    """

    stream: str
    target: str
    state: StreamState
    bytes: int = 0
    events: int | None = None
    digest: str | None = None
    lost: int = 0
    trouble: Trouble | None = None


class ScopePlan(Frozen):
    """What a plan of many streams says of the whole.

    Attributes:
        scope_id: the identity of the whole copy.
        source, target: the scopes; of archives the path of their folder.
        make_scope: whether the target's scope is made if there is none.
        run: which run it is, from 1; a new one is of what failed in the one before.
        begin, end: when the first and the last stream's bounds were taken, in milliseconds since
            1970 by the planner's clock. What is between them is how far the bounds are apart.
        left_out: by reason.
        tables: the key-value tables of the source's scope, which are not copied; the first
            MOST_NAMES.
        settled: streams that are in no plan of this run: copied in a run before, or impossible.
        move: whether the source's scope is deleted at the end if it is empty.
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


class Counts(Frozen):
    """The streams of a scope's copy, by their state. Left out ones are in none of them."""

    total: int = 0
    copied: int = 0
    failed: int = 0
    stopped: int = 0

    @property
    def left(self) -> int:
        """Streams of which it is not known yet what becomes of them."""
        return self.total - self.copied - self.failed - self.stopped


def counts_of(results: Iterable[StreamResult]) -> Counts:
    """The streams by their state."""
    states = [result.state for result in results]
    return Counts(
        total=len(states),
        copied=states.count(StreamState.COPIED),
        failed=states.count(StreamState.FAILED),
        stopped=states.count(StreamState.STOPPED),
    )
