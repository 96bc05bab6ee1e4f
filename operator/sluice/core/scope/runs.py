"""Runs of a scope: which run each stream's archive got, as an object in the folder of the archives.

Archives know nothing of each other. The record says which of their runs were made together, and
whether any stream failed.
"""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal

from pydantic import Field

from sluice.core.archive.documents import Document
from sluice.core.archive.manifest import Count, Maker, Sha256, WorkId
from sluice.core.scope.scope import MOST_STREAMS
from sluice.core.values.archive_layout import RUNS
from sluice.core.values.model import Frozen

_NAME: Final = re.compile(rf"{RUNS}scope-([0-9a-f]{{16}})\.json")

MOST_RUNS: Final = 1_000_000_000
"""Numbers of runs are below this, as a status can hold them."""

StreamPart = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,255}$")]
"""The name of a stream in a folder. Other clients may write the object, so a name is no path."""


class ScopeRunStream(Frozen):
    """The run that a stream's archive got.

    Attributes:
        stream: the name of the archive in the folder.
        sha256: the SHA-256 of the run's manifest, which identifies the run in the archive.
    """

    stream: StreamPart
    sha256: Sha256


class ScopeRun(Document):
    """A run of a scope, once it is over.

    Attributes:
        number: its number among the runs of the folder, from 1.
        work: the identity of the work that made it. It makes no second run.
        maker: the resource that it was made for.
        begin, end: the first and the last time at which a stream's bounds were read, in ms: each
            stream is archived up to a time between both.
        streams: the streams that are archived.
        failed: the archives of the other selected streams; they got no run.
        gone: the archives that the last complete run before of the same resource had, and for which
            no stream was selected any more.
    """

    kind: Literal["sluice.dev/archive-scope-run"] = "sluice.dev/archive-scope-run"
    number: Annotated[int, Field(ge=1, lt=MOST_RUNS)]
    work: WorkId
    maker: Maker | None = None
    begin: Count
    end: Count
    streams: Annotated[tuple[ScopeRunStream, ...], Field(max_length=MOST_STREAMS)]
    failed: Annotated[tuple[StreamPart, ...], Field(max_length=MOST_STREAMS)] = ()
    gone: Annotated[tuple[StreamPart, ...], Field(max_length=MOST_STREAMS)] = ()

    @property
    def series(self) -> str | None:
        """The identity of the resource that it was made for; None if that is not known."""
        return None if self.maker is None else self.maker.id

    @property
    def is_complete(self) -> bool:
        """Whether every selected stream was archived."""
        return not self.failed


def scope_run_name(number: int) -> str:
    """Return the name of the record of a run."""
    return f"{RUNS}scope-{number:016x}.json"


def scope_run_number(name: str) -> int | None:
    """Return the number of the run whose record has this name; None for other objects.

    Other clients may write the object. A number that no run can have would leave none for the next.
    """
    found = _NAME.fullmatch(name)
    number = 0 if found is None else int(found[1], 16)
    return number if 0 < number < MOST_RUNS else None
