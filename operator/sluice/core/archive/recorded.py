"""Facts of an archive after a run, which a driver reports to an operator that cannot look."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from sluice.core.values.model import Frozen

MOST_RUNS: Final = 20
"""Most runs that are listed; the count is of all runs."""


class RunFacts(Frozen):
    """A run of an archive, as the head lists it; see `core.archive.head.RunEntry`."""

    run: int
    time: datetime
    bytes: int
    events: int | None = None
    verified: bool = False


class LostBytes(Frozen):
    """Bytes [begin, end) of a segment that the source had lost before they were read.

    Without an end it is unknown how many bytes there were, if any.
    """

    segment: int
    begin: int
    end: int | None = None


class Recorded(Frozen):
    """The facts of a recorded run, which can be restored unless it was dropped since.

    Attributes:
        run: its number.
        head: the number of the last head.
        sha256: the SHA-256 of the last head's object.
        count: how many runs can be restored.
        runs: the last of these runs, by number.
        added: how many bytes of the stream the run added.
        verified: whether these bytes were read back before the run was recorded.
        lost: how many bytes the source had lost before the run read them.
        gaps: the first of the places where bytes were lost.
    """

    run: int
    head: int
    sha256: str
    count: int
    runs: tuple[RunFacts, ...]
    added: int
    verified: bool = False
    lost: int = 0
    gaps: tuple[LostBytes, ...] = ()
