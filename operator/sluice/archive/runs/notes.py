"""The notes of a run at work, in the archive: what each driver of it reads and adds to.

They count up from 0, and each is made under a number that nobody has taken. The first one has the
plan, and a mark of its own, which all that belong to it have as well. Where it is missing, what
else is there counts for nothing: an abort or a sweep has deleted it, and perhaps what it told of.
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
    """Somebody's notes in an archive.

    Args:
        objects: of the archive.
        owner: 32 hexadecimal digits, the same for whoever goes on with this work later.

    Attributes:
        anew: counts how often others than those known before were found.
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
        """Whether there were any when they were read."""
        return self._first is not None

    def read(self) -> list[Note]:
        """All notes, in order; none where there is no plan. Only those that are new are fetched.

        Raises:
            ArchiveDamaged: one cannot be read.
            ArchiveUnsupported: a later version wrote one.
        """
        anew = self.anew
        new = [*self.read_on()]
        self._known = new if anew != self.anew else [*self._known, *new]
        return self._known if self.are_there else []

    def read_on(self) -> Iterator[Note]:
        """The notes that are new, in order, each fetched when it is asked for, and not kept.

        Where others than those before were found, the first one has the plan. Raises as `read`.
        """
        first = self._objects.look(self._name(0))
        if first != self._first:
            self._first = None
            note = None if first is None else self._note(self._name(0))
            if first is None or note is None:
                return  # or deleted meanwhile
            if note.plan is None:
                raise ArchiveDamaged(f"{self._name(0)} has no plan", name=self._name(0))
            self._first, self._begun, self._last, self._size = first, note.begun, 0, first.size
            self.anew += 1
            yield note
        if first is not None:
            yield from self._after(self._last)

    def begin(self, note: Note) -> None:
        """Make the first note, which has the plan, if there is none.

        Raises:
            PlanTooLarge: nobody would read it.
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
        """Make the next note, behind all that others have made meanwhile.

        Raises:
            PlanTooLarge: there are so many already that nobody would read the run's manifest.
        """
        data = encode(note.model_copy(update={"begun": self._begun}))
        if self._size + len(data) > MOST_NOTES:
            raise PlanTooLarge(
                f"the run puts so many objects that its notes are longer than {size(MOST_NOTES)}",
                remedy="Archive the stream more often; nothing of this run is recorded.",
            )
        number = self._last + 1
        # Where an answer was lost, ours may be there already; to have it twice does no harm.
        while not self._objects.put_new(self._name(number), data):
            number += 1

    def stand(self) -> bool:
        """Whether the first note is there still; a sweep takes it before what it tells of."""
        note = self._note(self._name(0))
        return note is not None and note.begun == self._begun

    def delete(self) -> bool:
        """Delete all notes, the plan last; whether there were any."""
        names = self._names()
        self._delete(names)
        return bool(names)

    def forget(self) -> None:
        """Delete the notes that we know, with those that belong to them.

        Where somebody else has forgotten them before, those of a later run may be there by now.
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
        """The notes behind a number that belong to the first one."""
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
        """A note; None where there is none."""
        data = self._objects.get(name, 0, MOST_SHORT + 1)
        if data is not None and len(data) > MOST_SHORT:
            raise ArchiveDamaged(f"{name} is no note: it is too long", name=name)
        if data is None:
            return None
        self._held.add(len(data))  # readers remember as much of them
        with held(2 * weight_of_json(data)):
            return decode(Note, data, name=name)

    def _name(self, number: int) -> str:
        return str(NoteName(self._owner, number))
