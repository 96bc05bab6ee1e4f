"""The names of the objects in an archive; `docs/archive-format.md` describes each kind.

Numbers in names are hexadecimal digits of a fixed width. Object stores list in the order of names,
so a listing is in the order of the stream: by scale events, segments and offsets.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final, NamedTuple

from sluice.core.values.archive_layout import DATA, EVENTS, HEADS, RUNS, WORK

_RUN: Final = re.compile(r"runs/([0-9a-f]{16})-([0-9a-f]{64})\.json\.zst")
_HEAD: Final = re.compile(r"heads/([0-9a-f]{16})")
_DATA: Final = re.compile(
    r"data/([0-9a-f]{8})/([0-9a-f]{16})/([0-9a-f]{16})-([0-9a-f]{16})-([0-9a-f]{64})"
    r"\.(zst|parquet|events)"
)
_EVENT: Final = re.compile(r"events/([0-9a-f]{8})/([0-9a-f]{16})/([0-9a-f]{16})-([0-9a-f]{8})")
_NOTE: Final = re.compile(r"work/([0-9a-f]{32})/([0-9a-f]{16})")
_LEASE: Final = re.compile(r"leases/[0-9a-f]{32}(-[0-9a-f]{32})?")
_PARTIAL: Final = re.compile(r"\.partial/[0-9a-f]{32}")


class Format(StrEnum):
    """The format in which a run holds events."""

    SEGMENTS = "Segments"
    PARQUET = "Parquet"
    EVENT_OBJECTS = "EventObjects"

    @property
    def suffix(self) -> str:
        """The suffix of the names of its data objects."""
        return _SUFFIXES[self]

    @property
    def is_of_events(self) -> bool:
        """Whether each event is an object of its own."""
        return self is Format.EVENT_OBJECTS


_SUFFIXES: Final = {
    Format.SEGMENTS: "zst",
    Format.PARQUET: "parquet",
    Format.EVENT_OBJECTS: "events",
}


class DataName(NamedTuple):
    """The name of a data object, taken apart.

    Attributes:
        epoch: the number of the scale event that made the segment, as the archive counts.
        segment: the segment's id.
        start: the first offset in the object.
        end: the offset after the last byte.
        sha256: the SHA-256 of the object's bytes.
        format: the object's format.
    """

    epoch: int
    segment: int
    start: int
    end: int
    sha256: str
    format: Format

    def __str__(self) -> str:
        """Return the name."""
        return (
            f"{DATA}{self.epoch:08x}/{self.segment:016x}/{self.start:016x}-{self.end:016x}"
            f"-{self.sha256}.{self.format.suffix}"
        )


class EventName(NamedTuple):
    """The name of an event's object, taken apart.

    Attributes:
        epoch: as in DataName.
        segment: the segment's id.
        offset: offset of the event's header.
        length: number of the event's own bytes, which are those of the object.
    """

    epoch: int
    segment: int
    offset: int
    length: int

    def __str__(self) -> str:
        """Return the name."""
        return f"{EVENTS}{self.epoch:08x}/{self.segment:016x}/{self.offset:016x}-{self.length:08x}"


class RunName(NamedTuple):
    """The name of a manifest, taken apart.

    Attributes:
        run: the run's number.
        sha256: the SHA-256 of the object's bytes.
    """

    run: int
    sha256: str

    def __str__(self) -> str:
        """Return the name."""
        return f"{RUNS}{self.run:016x}-{self.sha256}.json.zst"


class NoteName(NamedTuple):
    """The name of a note, taken apart.

    Attributes:
        owner: the identity of the note's owner, as in the names of leases.
        number: the note's number among its owner's notes, from 0.
    """

    owner: str
    number: int

    def __str__(self) -> str:
        """Return the name."""
        return f"{notes_prefix(self.owner)}{self.number:016x}"


def notes_prefix(owner: str) -> str:
    """Return the prefix of the names of an owner's notes."""
    return f"{WORK}{owner}/"


def read_note(name: str) -> NoteName | None:
    """Parse the name of a note; return None if it is another name."""
    found = _NOTE.fullmatch(name)
    return NoteName(found[1], int(found[2], 16)) if found else None


def is_lease(name: str) -> bool:
    """Tell whether an object is a lease."""
    return _LEASE.fullmatch(name) is not None


def is_known(name: str) -> bool:
    """Tell whether a name is one that an archive gives. Sluice never deletes other objects."""
    known = (read_data(name), read_event(name), read_run(name), read_note(name), head_number(name))
    return any(one is not None for one in known) or is_lease(name) or is_partial(name)


def is_partial(name: str) -> bool:
    """Tell whether a file is being written, or was left unfinished."""
    return _PARTIAL.fullmatch(name) is not None


def head_name(number: int) -> str:
    """Return the name of a head."""
    return f"{HEADS}{number:016x}"


def head_number(name: str) -> int | None:
    """Parse the name of a head; return its number, or None if it is another name."""
    found = _HEAD.fullmatch(name)
    return int(found[1], 16) if found else None


def read_run(name: str) -> RunName | None:
    """Parse the name of a manifest; return None if it is another name."""
    found = _RUN.fullmatch(name)
    return RunName(int(found[1], 16), found[2]) if found else None


def read_data(name: str) -> DataName | None:
    """Parse the name of a data object; return None if it is another name."""
    found = _DATA.fullmatch(name)
    if found is None:
        return None
    epoch, segment, start, end = (int(text, 16) for text in found.groups()[:4])
    form = next(one for one, suffix in _SUFFIXES.items() if suffix == found[6])
    return DataName(epoch, segment, start, end, found[5], form)


def read_event(name: str) -> EventName | None:
    """Parse the name of an event's object; return None if it is another name."""
    found = _EVENT.fullmatch(name)
    return EventName(*(int(text, 16) for text in found.groups())) if found else None
