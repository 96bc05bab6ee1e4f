"""Read and write the notes of an unfinished run, which its drivers share.

Notes are numbered from 0. Each is made under a number that is not taken. The first note has the
plan and a random mark, which all later notes of the same run repeat. If the first note is missing,
the others do not count: an abort or a sweep has deleted it, and perhaps the objects that they list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

from sluice.core.archive.documents import MOST_NOTES, MOST_SHORT, decode, encode
from sluice.core.archive.names import NoteName, notes_prefix, read_note
from sluice.core.archive.notes import Note
from sluice.core.values.text import size
from sluice.core.values.weight import weight_of_json
from sluice.errors import ArchiveDamaged, PlanTooLarge
from sluice.stores.allowance import Held, held

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sluice.archive.objects.objects import ObjectInfo, Objects


class Notes:
    """The notes of one owner's work in an archive.

    Args:
        objects: the objects of the archive.
        owner: 32 hexadecimal digits, the same for each process that goes on with this work.

    Attributes:
        anew: how often a new first note was found, with which all notes known before are void.
    """

    def __init__(self, objects: Objects, owner: str) -> None:
        self._objects = objects
        self._owner = owner
        self._first: ObjectInfo | None = None
        self._begun = ""
        self._last = 0
        self._size = 0
        self._known: list[Note] = []
        self._held = Held()
        self.anew = 0

    @property
    def are_there(self) -> bool:
        """Whether there were notes when they were read last."""
        return self._first is not None

    def read(self) -> list[Note]:
        """Return all notes, in order; none without a first note. Only new notes are fetched.

        Raises:
            ArchiveDamaged: a note cannot be read.
            ArchiveUnsupported: a later version wrote a note.
        """
        anew = self.anew
        new = [*self.read_on()]
        self._known = new if anew != self.anew else [*self._known, *new]
        return self._known if self.are_there else []

    def read_on(self) -> Iterator[Note]:
        """Yield the new notes, in order. Each is fetched when it is yielded, and not kept.

        If the notes belong to another first note than before, that one is yielded first; it has the
        plan. Raises what `read` raises.
        """
        first = self._objects.look(self._name(0))
        if first != self._first:
            self._first = None
            note = None if first is None else self._note(self._name(0))
            if first is None or note is None:
                return  # there is no first note, or it was deleted meanwhile
            if note.plan is None:
                raise ArchiveDamaged(f"{self._name(0)} has no plan", name=self._name(0))
            self._first, self._begun, self._last, self._size = first, note.begun, 0, first.size
            self.anew += 1
            yield note
        if first is not None:
            yield from self._after(self._last)

    def begin(self, note: Note) -> None:
        """Make the first note, which has the plan, unless there is one.

        Raises:
            PlanTooLarge: the note is so long that readers would refuse it.
        """
        begun = uuid4().hex
        data = encode(note.model_copy(update={"begun": begun}))
        if len(data) > MOST_SHORT:
            raise PlanTooLarge(
                f"the plan of this run is longer than {size(MOST_SHORT)}",
                remedy="Archive a stream with fewer segments at a time; nothing was made.",
            )
        if self._objects.put_new(self._name(0), data):
            self._begun = begun

    def add(self, note: Note) -> None:
        """Make the next note, after those that other drivers have made meanwhile.

        Raises:
            PlanTooLarge: the notes list so many objects that readers would refuse the manifest.
        """
        data = encode(note.model_copy(update={"begun": self._begun}))
        if self._size + len(data) > MOST_NOTES:
            raise PlanTooLarge(
                f"the run puts so many objects that its notes are longer than {size(MOST_NOTES)}",
                remedy="Archive the stream more often; nothing of this run is recorded.",
            )
        number = self._last + 1
        # If an answer was lost, the note may be there already. A second one does no harm.
        while not self._objects.put_new(self._name(number), data):
            number += 1

    def stand(self) -> bool:
        """Tell whether the first note still exists. A sweep deletes it before the run's objects."""
        note = self._note(self._name(0))
        return note is not None and note.begun == self._begun

    def delete(self) -> bool:
        """Delete all notes, the first one last. Return whether there were any."""
        names = self._names()
        self._delete(names)
        return bool(names)

    def delete_own(self) -> None:
        """Delete all notes, if the first one still is the one that was read or made here.

        Otherwise another process has deleted them, and the present ones may be of a later run.
        """
        names = self._names()
        if self.stand():
            self._delete(names)

    def _names(self) -> list[str]:
        found = (one.name for one in self._objects.list(notes_prefix(self._owner)))
        return [name for name in found if read_note(name) is not None]

    def _delete(self, names: list[str]) -> None:
        for batch in (names[1:], names[:1]):
            if batch:
                self._objects.delete(batch)

    def _after(self, last: int) -> Iterator[Note]:
        """Yield the notes after a number that belong to the first note."""
        for found in self._objects.list(notes_prefix(self._owner), self._name(last)):
            name = read_note(found.name)
            note = None if name is None else self._note(found.name)
            if name is None or note is None:
                continue
            self._last = name.number
            if note.begun == self._begun:
                self._size += found.size
                yield note

    def _note(self, name: str) -> Note | None:
        """Read a note; None if it does not exist."""
        data = self._objects.get(name, 0, MOST_SHORT + 1)
        if data is not None and len(data) > MOST_SHORT:
            raise ArchiveDamaged(f"{name} is no note: it is too long", name=name)
        if data is None:
            return None
        self._held.add(len(data))  # callers keep about as much of it
        with held(2 * weight_of_json(data)):
            return decode(Note, data, name=name)

    def _name(self, number: int) -> str:
        return str(NoteName(self._owner, number))
