"""What there is to say of an archive after a run of it: by who can look, to who cannot."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from sluice.core.values.model import Frozen

MOST_RUNS: Final = 20
"""Runs that are listed; all are counted."""


class RunFacts(Frozen):
    """A run of an archive, as the head lists it; see `core.archive.head.RunEntry`."""

    run: int
    time: datetime
    bytes: int
    events: int | None = None
    verified: bool = False


class LostBytes(Frozen):
    """Bytes [begin, end) of a segment that the source had lost before they were read.

    Without an end nobody knows how many there were, perhaps none.
    """

    segment: int
    begin: int
    end: int | None = None


class Recorded(Frozen):
    """A run of an archive is recorded: it can be restored, or was let go since.

    Attributes:
        run: its number.
        head: the number of the last head.
        sha256: of the last head's object.
        count: runs that can be restored.
        runs: the last of these, the last one last.
        added: bytes of the stream that the run added.
        verified: whether these were read back before it was recorded.
        lost: bytes that the source had lost before the run read them.
        gaps: where, the first of them.
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
