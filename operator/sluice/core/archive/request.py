"""What somebody wants archived, with names resolved and nothing observed yet."""

from __future__ import annotations

import hashlib
import json

from sluice.core.archive.manifest import Maker
from sluice.core.archive.names import Format
from sluice.core.copy.plan import OnTruncation
from sluice.core.values.model import Frozen, StreamName

MAX_EVENTS = 1_000_000
"""Events that become objects of their own, unless somebody asks for more."""


class ArchiveRequest(Frozen):
    """One run of an archive.

    Attributes:
        archive_id: the identity of who archives, 32 hexadecimal digits.
        run_key: which of its runs this is. A run that is asked for again under the same key is not
            made twice. None for another run whenever one is asked for, but for one that was begun.
        source: the stream.
        store: its store's address, for people.
        path: of the archive in its store.
        format: how it holds events; it is that of the archive's first run.
        verify: whether what is put is read back before it is recorded.
        max_events: of the format EventObjects, how many the run may hold.
        on_truncation: what to do where the source has lost bytes that are not archived yet.
        maker: whoever asks for it; nobody whose archive it would be for None.
        sole: the identity of the work that has to have a run in the archive, if there is one; None
            where that may be anybody's.
    """

    archive_id: str
    run_key: str | None = None
    source: StreamName
    store: str
    path: str
    format: Format = Format.SEGMENTS
    verify: bool = True
    max_events: int = MAX_EVENTS
    on_truncation: OnTruncation = "Fail"
    maker: Maker | None = None
    sole: str | None = None

    @property
    def copy_id(self) -> str:
        """The identity of the run, 32 hexadecimal digits."""
        return run_id(self.archive_id, self.run_key)

    @property
    def origin(self) -> str:
        """What is archived, for people."""
        return str(self.source)


def run_id(archive_id: str, run_key: str | None) -> str:
    """The identity of a run, by that of who archives and the run's key."""
    text = json.dumps([archive_id, run_key], separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]
