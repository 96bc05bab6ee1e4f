"""Build the status of a ScopeCopy that puts its streams into archives."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from sluice.core.reconcile.copies.archive_status import ArchiveStatus
from sluice.core.reconcile.copies.scope_status import ScopeStatus
from sluice.core.reconcile.shared.conditions import Saying

if TYPE_CHECKING:
    from datetime import datetime

    from sluice.api.kinds.scopecopy import ScopeCopySpec
    from sluice.core.reconcile.copies.seen import CopySeen


class ScopeArchiveStatus(ScopeStatus):
    """Builder of the next status of a ScopeCopy whose targets are archives."""

    work: ClassVar[str] = ArchiveStatus.work
    there: ClassVar[str] = ArchiveStatus.there
    comparing: ClassVar[str] = "All bytes are written; they are read back, and runs are recorded."
    published: ClassVar[str] = "All runs are recorded; the driver tidies."
    dropping: ClassVar[str] = ArchiveStatus.dropping
    undropped: ClassVar[str] = "What runs have left cannot be deleted yet."
    made: ClassVar[str] = "archived"
    where: ClassVar[str] = "in"

    def _verified(self) -> Saying:
        return Saying(
            "ReadBack",
            "What was put of each stream was read back and compared before its run was recorded; "
            "the SHA-256 of each run's manifest is in the ConfigMaps that status.resultRefs names.",
        )

    def _moving(self, message: str) -> Saying:
        return Saying("Archiving", message)


def scope_status_of(copy: CopySeen, spec: ScopeCopySpec, now: datetime) -> ScopeStatus:
    """Return the builder of a ScopeCopy's status, to a scope or to archives."""
    kind = ScopeStatus if spec.target.archive is None else ScopeArchiveStatus
    return kind(copy, spec, now)
