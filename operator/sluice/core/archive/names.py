"""The names of what is in an archive; `docs/archive-format.md` says what each is.

Numbers stand in names as hexadecimal digits of a fixed width. So a listing in the order of names,
as object stores give it, is in the order of the stream: by scale events, segments and offsets.
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
    """How a run holds events."""

    SEGMENTS = "Segments"
    PARQUET = "Parquet"
    EVENT_OBJECTS = "EventObjects"

    @property
    def suffix(self) -> str:
        """What the names of its data objects end with."""
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
    """What the name of a data object says.

    Attributes:
        epoch: which scale event made the segment, counted by the archive.
        segment: the segment's id.
        start: the first offset in the object.
        end: the offset after the last one.
        sha256: of the object's bytes.
        format: what the object is.
    """

    epoch: int
    segment: int
    start: int
    end: int
    sha256: str
    format: Format

    def __str__(self) -> str:
        """The name."""
        return (
            f"{DATA}{self.epoch:08x}/{self.segment:016x}/{self.start:016x}-{self.end:016x}"
            f"-{self.sha256}.{self.format.suffix}"
        )


class EventName(NamedTuple):
    """What the name of an event's object says.

    Attributes:
        epoch: as of DataName.
        segment: the segment's id.
        offset: where the event begins, with its header.
        length: of the event's own bytes, which are those of the object.
    """

    epoch: int
    segment: int
    offset: int
    length: int

    def __str__(self) -> str:
        """The name."""
        return f"{EVENTS}{self.epoch:08x}/{self.segment:016x}/{self.offset:016x}-{self.length:08x}"


class RunName(NamedTuple):
    """What the name of a manifest says.

    Attributes:
        run: the run's number.
        sha256: of the object's bytes.
    """

    run: int
    sha256: str

    def __str__(self) -> str:
        """The name."""
        return f"{RUNS}{self.run:016x}-{self.sha256}.json.zst"


class NoteName(NamedTuple):
    """What the name of a note says.

    Attributes:
        owner: whose it is, as of a lease.
        number: counts an owner's notes, from 0.
    """

    owner: str
    number: int

    def __str__(self) -> str:
        """The name."""
        return f"{notes_prefix(self.owner)}{self.number:016x}"


def notes_prefix(owner: str) -> str:
    """Before the names of somebody's notes."""
    return f"{WORK}{owner}/"


def read_note(name: str) -> NoteName | None:
    """What the name of a note says; None where it is none."""
    found = _NOTE.fullmatch(name)
    return NoteName(found[1], int(found[2], 16)) if found else None


def is_lease(name: str) -> bool:
    """Whether an object is a lease."""
    return _LEASE.fullmatch(name) is not None


def is_known(name: str) -> bool:
    """Whether an object is one of an archive's. Any other one is somebody else's, and stays."""
    known = (read_data(name), read_event(name), read_run(name), read_note(name), head_number(name))
    return any(one is not None for one in known) or is_lease(name) or is_partial(name)


def is_partial(name: str) -> bool:
    """Whether a file is one that is being written, or was."""
    return _PARTIAL.fullmatch(name) is not None


def head_name(number: int) -> str:
    """The name of a head."""
    return f"{HEADS}{number:016x}"


def head_number(name: str) -> int | None:
    """The number of the head of this name; None where it is no head's."""
    found = _HEAD.fullmatch(name)
    return int(found[1], 16) if found else None


def read_run(name: str) -> RunName | None:
    """What the name of a manifest says; None where it is none."""
    found = _RUN.fullmatch(name)
    return RunName(int(found[1], 16), found[2]) if found else None


def read_data(name: str) -> DataName | None:
    """What the name of a data object says; None where it is none."""
    found = _DATA.fullmatch(name)
    if found is None:
        return None
    epoch, segment, start, end = (int(text, 16) for text in found.groups()[:4])
    form = next(one for one, suffix in _SUFFIXES.items() if suffix == found[6])
    return DataName(epoch, segment, start, end, found[5], form)


def read_event(name: str) -> EventName | None:
    """What the name of an event's object says; None where it is none."""
    found = _EVENT.fullmatch(name)
    return EventName(*(int(text, 16) for text in found.groups())) if found else None


def segment_prefix(folder: str, epoch: int, segment: int) -> str:
    """Before the names of a segment's objects in one of the folders DATA and EVENTS."""
    return f"{folder}{epoch:08x}/{segment:016x}/"
