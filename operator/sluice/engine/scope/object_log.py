"""Keep the log of a scope's copy to archives as notes in the archives' folder.

A note is made under the number after the last note, by a put that fails if that note exists. So of
two drivers that write at once, each knows what stands before its own record, as in a segment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

from sluice.archive.runs.archive_root import ArchiveRoot
from sluice.core.archive.documents import MOST_SHORT, decode, encode
from sluice.core.archive.scope_note import (
    ScopeNote,
    is_scope_note,
    scope_note_name,
    scope_notes_prefix,
    scope_of_notes,
)
from sluice.core.scope.scope import ScopePlan
from sluice.core.values.archive_layout import WORK
from sluice.core.values.weight import weight_of_json
from sluice.core.workloads.scope_work import ScopeWork
from sluice.engine.journal.record_log import RecordTrail
from sluice.engine.scope.log import ScopeLog, ScopeRecords
from sluice.errors import (
    ArchiveDamaged,
    CopyAborted,
    JournalDamaged,
    NoSuchSegment,
    StoreUnavailable,
)
from sluice.stores import allowance

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sluice.archive.objects.objects import ObjectInfo, Objects
    from sluice.core.scope.request import ScopeRequest
    from sluice.engine.access.source_runs import Place


class NoteTrail(RecordTrail):
    """A log in objects, which remembers how far it has read.

    Notes of a deleted log may be left over, or be made by a late driver. Their mark differs from
    that of the first note. So their records are ignored, and only their numbers are taken.

    Args:
        objects: the objects of the folder.
        scope_id: the identity of the whole copy.
    """

    def __init__(self, objects: Objects, scope_id: str) -> None:
        self.name = scope_notes_prefix(scope_id)
        self._objects = objects
        self._scope_id = scope_id
        self._first: ObjectInfo | None = None
        self._begun = ""
        self._closed = False
        self._last = -1

    def discard(self) -> None:
        """Delete the log, whatever is in it."""
        self._clear()

    def _delete(self) -> bool:
        """Close the log, so that no driver adds records, and then delete it."""
        if self._first is None:
            return False
        last = self._last
        closed = self._closed or self._put(ScopeNote(begun=self._begun, closed=True))
        if not closed:  # the note may be there all the same, if the answer was lost
            self._read_on()
            closed = self._closed and self._last == last + 1
        if closed:
            self._clear()
        self._reset()
        return closed

    def _read_on(self) -> None:
        first = self._objects.look(self._name(0))
        if first is None or first != self._first:
            self._reset()
        if first is None:
            return
        self._first = first
        while not self._closed and (note := self._note(self._last + 1)) is not None:
            self._begun = self._begun or note.begun
            self._last += 1
            if note.begun != self._begun:
                continue
            if note.closed:
                self._forget()
                self._closed = True
            else:
                self._take(note.records)

    def _append(self, records: Sequence[Mapping[str, Any]]) -> bool:
        begun = self._begun or uuid4().hex
        if not self._put(ScopeNote(begun=begun, records=tuple(map(dict, records)))):
            return False
        name = self._name(self._last + 1)
        first = self._objects.look(self._name(0))
        if self._first is not None and first != self._first:
            # The log was deleted before this note was made, so no driver would read it.
            self._objects.delete([name])
            raise NoSuchSegment("the log of the scope's copy is gone", segment=self.name)
        self._first, self._begun = first, begun
        self._last += 1
        self._take(records)
        return True

    def _follow(self) -> None:
        begun, last = self._begun, self._last
        self._read_on()
        if self._first is None or self._closed:
            raise NoSuchSegment("the log of the scope's copy is gone", segment=self.name)
        if begun and self._begun != begun:
            raise CopyAborted(f"the copy that {self.name} belongs to was aborted")
        if self._begun == begun and self._last == last:
            raise StoreUnavailable(f"{self._name(last + 1)} is there, and yet it is not")

    def _make(self) -> None:
        """Delete the rest of a closed log, whose deletion was killed."""
        if self._closed:
            self._clear()
        self._reset()

    def _put(self, note: ScopeNote) -> bool:
        """Make the next note. Return False if it already exists."""
        return self._objects.put_new(self._name(self._last + 1), encode(note))

    def _note(self, number: int) -> ScopeNote | None:
        """Return a note; None if it does not exist."""
        name = self._name(number)
        data = self._objects.get(name, 0, MOST_SHORT + 1)
        if data is None:
            return None
        if len(data) > MOST_SHORT:
            raise JournalDamaged(f"{name} is too long for a record of a log")
        try:
            with allowance.held(2 * weight_of_json(data)):
                return decode(ScopeNote, data, name=name)
        except ArchiveDamaged as error:
            raise JournalDamaged(f"the log of a scope is damaged: {error.message}") from error

    def _clear(self) -> None:
        """Delete all notes, the first note before the others: without it they do not count."""
        found = (one.name for one in self._objects.list(self.name))
        names = [name for name in found if is_scope_note(name)]
        if self._objects.look(self._name(0)) not in {None, self._first}:
            return  # another client deleted this log, and a new one was begun
        for batch in (names[:1], names[1:]):
            if batch:
                self._objects.delete(batch)

    def _reset(self) -> None:
        self._first, self._begun, self._closed, self._last = None, "", False, -1
        self._forget()

    def _name(self, number: int) -> str:
        return scope_note_name(self._scope_id, number)


class ScopeNotes(ScopeRecords, NoteTrail):
    """The log of one scope's copy in a folder of archives.

    Args:
        root: the place that holds the folder.
        scope_id: the identity of the whole copy.
        folder: the folder's path.
        source, move: see ScopeWork.
    """

    def __init__(
        self,
        root: ArchiveRoot,
        scope_id: str,
        folder: str,
        *,
        source: str | None = None,
        move: bool | None = None,
    ) -> None:
        ScopeRecords.__init__(self, ScopeWork(scope_id, folder, source, move))
        objects = root.archive(folder, field="spec.target.archive.path").objects
        NoteTrail.__init__(self, objects, scope_id)


def scope_ids_in(root: ArchiveRoot, folder: str) -> list[str]:
    """Return the identities of the copies that have a log in a folder of archives."""
    objects = root.archive(folder, field="spec.target.archive.path").objects
    found = (scope_of_notes(one) for one in objects.folders(WORK))
    return [one for one in found if one is not None]


def log_of(target: Place, scope_id: str, work: ScopeRequest | ScopePlan) -> ScopeRecords:
    """Return the log of a scope's copy. A plan in it that is of another copy counts as damaged.

    Args:
        target: the place that is written to.
        scope_id: the identity of the whole copy.
        work: the request or the plan of the copy.
    """
    goal, source, move = work.target, work.source, work.move
    if isinstance(target, ArchiveRoot):
        return ScopeNotes(target, scope_id, goal, source=source, move=move)
    following = work.following if isinstance(work, ScopePlan) else work
    known = following if following is not None and following.follow else None
    return ScopeLog(target, scope_id, goal, source=source, move=move, following=known)
