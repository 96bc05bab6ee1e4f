"""Requests for runs of archives, with names resolved and nothing observed yet."""

from __future__ import annotations

import hashlib
import json

from sluice.core.archive.manifest import Maker
from sluice.core.archive.names import Format
from sluice.core.copy.plan import OnTruncation
from sluice.core.values.model import Frozen, StreamName

MAX_EVENTS = 1_000_000
"""Most events that become objects of their own, unless a user allows more."""


class ArchiveRequest(Frozen):
    """A request for one run of an archive.

    Attributes:
        archive_id: the identity of the resource or command that archives, 32 hexadecimal digits.
        run_key: the key of the run among its runs. A second request with the same key makes no
            second run. Each request with None makes another run, or resumes one that was begun.
        source: the stream to archive.
        store: its store's address, for people.
        path: the archive's path in its store.
        format: how the run holds events: the format of the archive's first run.
        verify: whether objects are read back before the run is recorded.
        max_events: most events that the run may hold in the format EventObjects.
        on_truncation: what to do if the source has lost bytes that are not archived yet.
        maker: the resource that the run is made for; None if there is none.
        sole: if set, fail unless this work has already recorded a run in the archive, or the
            archive is new.
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
        """The stream that is archived, for people."""
        return str(self.source)


def run_id(archive_id: str, run_key: str | None) -> str:
    """Return the identity of a run: 32 hexadecimal digits. See ArchiveRequest for both fields."""
    text = json.dumps([archive_id, run_key], separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]
