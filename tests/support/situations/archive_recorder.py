"""A StreamArchive whose status the operator's own pure functions write: see `recorder`."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sluice.api.kinds.streamarchive import StreamArchive
from sluice.core.archive.recorded import Recorded, RunFacts
from sluice.core.reconcile.copies.actions import AddFinalizer, RemoveFinalizer
from sluice.core.reconcile.copies.archive_seen import ArchiveSeen
from sluice.core.reconcile.copies.decide import questions
from sluice.core.reconcile.copies.decide_archive import reconcile_archive
from sluice.core.reconcile.copies.scheduled.decide import after_failure
from sluice.core.reconcile.copies.scheduled.seen import times
from sluice.core.reconcile.shared.jobs import JobPhase
from sluice.core.values.trouble import Trouble
from sluice.core.workloads.answers import Planned
from sluice.core.workloads.request import identity_of
from sluice.kube.api.objects import copy_seen, parse
from support.cases import resources
from support.reconcile.archives_seen import plan
from support.situations.recorder import BYTES, DIGEST, EVENTS, CopyingRecorder

if TYPE_CHECKING:
    from sluice.core.reconcile.copies.actions import Decision
    from sluice.errors import SluiceError


class ArchiveRecorder(CopyingRecorder):
    """A recorder of one StreamArchive.

    Args:
        name: the resource's name.
        spec: fields of its spec besides source and destination.
    """

    def __init__(self, name: str, **spec: Any) -> None:
        super().__init__(resources.ARCHIVE, name, **spec)
        # The API server sets these defaults.
        frozen = {"format": "Segments", "onDelete": "Retain", "onTruncation": "Fail"}
        self.body["spec"] = frozen | self.body["spec"]
        self.plan = plan(BYTES)
        self._runs = 0

    @property
    def copy_id(self) -> str:
        """The archive's identity in stores."""
        return identity_of(parse(self.body, StreamArchive), cluster="c")

    def look(self, **world: Any) -> Decision:
        """Let the operator look at the archive and write its status. See CopyingRecorder."""
        seen, around = self._seen(), self._world(**world)
        asked = questions(seen, replace(around, answer=None, reading=None))
        assert around.answer is None or asked, "no question was asked"
        return self._write(reconcile_archive(seen, around))

    def fail(self, error: SluiceError, **world: Any) -> Decision:
        """Let an action of the last look fail."""
        return self._write(after_failure(self._seen(), self._world(**world), Trouble.of(error)))

    def start(self) -> None:
        """Begin an attempt, with both stores present."""
        decision = self.look(answer=Planned(plan=self.plan))
        assert AddFinalizer() in decision.actions

    def finish(self, **changes: Any) -> None:
        """End the driver well, with the run recorded."""
        self.later(20)
        self._runs += 1
        facts = tuple(
            RunFacts(run=run, time=self.now, bytes=BYTES, events=EVENTS, verified=True)
            for run in range(1, self._runs + 1)
        )
        answer = Recorded(
            run=self._runs,
            head=self._runs,
            sha256=DIGEST,
            count=self._runs,
            runs=facts,
            added=BYTES,
            verified=True,
        ).model_copy(update=changes)
        decision = self.look(jobs=(self.job(JobPhase.SUCCEEDED),), answer=answer)
        assert RemoveFinalizer() in decision.actions

    def _seen(self) -> ArchiveSeen:
        resource = parse(self.body, StreamArchive)
        seen = copy_seen(self.body, resource, self.copy_id)
        assert isinstance(seen, ArchiveSeen)
        created = datetime.fromisoformat(self.body["metadata"]["creationTimestamp"])
        due, later = times(resource.spec, seen.status, created=created, now=self.now)
        return replace(seen, deleted=self.deleted, due=due, later=later)
