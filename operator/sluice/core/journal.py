"""What a copy writes down in the target store while it runs.

The journal is a segment of its own, named from the copy id, to which records are appended one at a
time by compare-and-set on its length. The first record is the plan, so whoever writes it first
decides the bounds for everybody. A record is JSON, framed like an event: int32 0, int32 length.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from sluice.core import rolling
from sluice.core.digest import chunk_of
from sluice.core.plan import SegmentPlan, StreamPlan
from sluice.core.rolling import Roll
from sluice.errors import JournalDamaged

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_HEADER = struct.Struct(">ii")
_DIGEST = 32
_SHOWN: Final = 200
"""Characters of a record in a message."""


@dataclass(frozen=True, slots=True)
class Journal:
    """The journal, read.

    Attributes:
        plan: what is copied.
        target: ids of the target's segments, in the plan's order, once the target is claimed.
        digests: per segment of the plan, SHA-256 of each source chunk hashed so far.
        events: per segment of the plan, the exact number of events, once it is counted.
        amended: the segments that are copied otherwise than planned, by their place in the plan.
        drained: the segments that a source that is moved has got since it was planned; None until
            it is sealed.
        roll: how far an append has come; the target's segments are then those beside which is
            staged.
    """

    plan: StreamPlan
    target: tuple[int, ...] | None = None
    digests: Mapping[int, Mapping[int, bytes]] = field(default_factory=dict)
    events: Mapping[int, int] = field(default_factory=dict)
    amended: Mapping[int, SegmentPlan] = field(default_factory=dict)
    drained: tuple[SegmentPlan, ...] | None = None

    roll: Roll = field(default_factory=Roll)

    @property
    def current(self) -> StreamPlan:
        """The plan as it stands: without what the source has lost, and up to where it ends."""
        if not self.amended and not self.drained:
            return self.plan
        planned = (*self.plan.segments, *(self.drained or ()))
        return self.plan.of([self.amended.get(i, one) for i, one in enumerate(planned)])


MOST_RECORD: Final = 8 << 20
"""Bytes of the longest record: stores take appends of up to 8 MiB. A record is read as a whole, by
which nothing else gets on, and what it says may be somebody else's server's invention."""


def frame(record: Mapping[str, Any]) -> bytes:
    """A record as it stands in the segment."""
    body = json.dumps(record, separators=(",", ":")).encode()
    return _HEADER.pack(0, len(body)) + body


def unframe(data: bytes) -> list[dict[str, Any]]:
    """The records in `data`, which must be whole frames.

    Raises:
        JournalDamaged: the bytes are not records.
    """
    records = []
    at = 0
    while at < len(data):
        if len(data) - at < _HEADER.size:
            raise _damaged(at)
        kind, length = _HEADER.unpack_from(data, at)
        at += _HEADER.size
        if kind != 0 or not 0 <= length <= min(MOST_RECORD, len(data) - at):
            raise _damaged(at)
        try:
            record = json.loads(data[at : at + length])
        except (ValueError, RecursionError) as error:
            raise _damaged(at) from error
        if not isinstance(record, dict):
            raise _damaged(at)
        records.append(record)
        at += length
    return records


def _damaged(at: int) -> JournalDamaged:
    return JournalDamaged(f"the copy's journal is damaged at offset {at}")


def plan_record(plan: StreamPlan) -> dict[str, Any]:
    """Decides the bounds; only ever the first record."""
    return {"record": "plan", "plan": plan.model_dump(mode="json")}


def target_record(segments: Iterable[int]) -> dict[str, Any]:
    """Names the target's segments, in the plan's order, once the stream is made."""
    return {"record": "target", "segments": list(segments)}


def amend_record(segment: int, edition: int, to: int) -> dict[str, Any]:
    """The source has lost what a segment has before `to`; counts for this edition of it."""
    return {"record": "amend", "segment": segment, "edition": edition, "to": to}


def drain_record(
    ends: Iterable[tuple[int, int | None]], later: Iterable[SegmentPlan], target: Iterable[int]
) -> dict[str, Any]:
    """Where a source ends that was sealed; the first one counts.

    Args:
        ends: of each segment of the plan, and the number of events up to there.
        later: segments that came after the plan was made.
        target: ids of the target's segments for these.
    """
    return {
        "record": "drain",
        "ends": [list(end) for end in ends],
        "segments": [segment.model_dump(mode="json") for segment in later],
        "target": list(target),
    }


def digest_record(
    segment: int, first: int, digests: Iterable[bytes], edition: int = 0
) -> dict[str, Any]:
    """SHA-256 of consecutive source chunks of a segment, from chunk `first` on.

    A first and a last chunk depend on the bounds, so digests count for their edition only.
    """
    return {
        "record": "digests",
        "segment": segment,
        "first": first,
        "sha256": b"".join(digests).hex(),
        **_of(edition),
    }


def _of(edition: int) -> dict[str, int]:
    return {"edition": edition} if edition else {}


def digest_records(
    segment: int, digests: Mapping[int, bytes], edition: int = 0
) -> list[dict[str, Any]]:
    """Digests of any chunks of a segment, as records of consecutive ones."""
    records: list[dict[str, Any]] = []
    run: list[int] = []
    for chunk in [*sorted(digests), None]:
        if run and chunk != run[-1] + 1:
            records.append(digest_record(segment, run[0], (digests[c] for c in run), edition))
            run = []
        if chunk is not None:
            run.append(chunk)
    return records


def events_record(segment: int, events: int, edition: int = 0) -> dict[str, Any]:
    """The counted number of events of a segment."""
    return {"record": "events", "segment": segment, "events": events, **_of(edition)}


def fold(records: Iterable[Mapping[str, Any]]) -> Journal | None:
    """The journal that these records make; None when there are none.

    Later records of one kind add to earlier ones; a repeated target record changes nothing.

    Raises:
        JournalDamaged: the first record is no plan, or a record is unknown or damaged.
    """
    try:
        return _fold(records)
    except (ValueError, TypeError, KeyError, IndexError) as error:
        raise JournalDamaged(f"the copy's journal has a damaged record: {error}") from error


def _fold(records: Iterable[Mapping[str, Any]]) -> Journal | None:  # noqa: C901, PLR0912 - one case for each record
    plan: StreamPlan | None = None
    target: tuple[int, ...] | None = None
    digests: dict[int, dict[int, bytes]] = {}
    events: dict[int, int] = {}
    amended: dict[int, SegmentPlan] = {}
    drained: tuple[SegmentPlan, ...] | None = None
    roll = Roll()
    for record in records:
        match record:
            case {"record": "plan", "plan": body} if plan is None:
                plan = StreamPlan.model_validate(body)
            case {"record": "target", "segments": ids} if plan is not None:
                target = target or tuple(map(_number, ids))
            case {"record": "drain", "ends": ends, "segments": bodies, "target": ids} if (
                plan is not None and target is not None
            ):
                if drained is None:
                    drained = tuple(map(SegmentPlan.model_validate, bodies))
                    target = (*target, *map(_number, ids))
                    for place, (end, count) in enumerate(ends):
                        now = amended.get(place) or plan.segments[place]
                        amended[place] = now.until(_number(end), count)
                        if end != now.end:  # its last chunk is longer now, where it was not whole
                            digests.get(place, {}).pop(chunk_of(now.end), None)
            case {"record": "amend", "segment": segment, "edition": edition, "to": to} if (
                plan is not None
            ):
                planned = (*plan.segments, *(drained or ()))
                now = amended.get(_number(segment)) or planned[segment]
                if edition == now.edition and now.start < _number(to) <= now.end:
                    amended[segment] = now.without(to)
                    digests.pop(segment, None)
                    events.pop(segment, None)
            case {"record": "digests" | "events", "segment": segment} if _is_late(record, amended):
                pass
            case {"record": "digests", "segment": segment, "first": first, "sha256": text} if (
                plan is not None
            ):
                raw = bytes.fromhex(text)
                if len(raw) % _DIGEST:
                    raise ValueError(f"{len(raw)} bytes are no SHA-256 digests")
                chunks = digests.setdefault(_number(segment), {})
                for i in range(len(raw) // _DIGEST):
                    chunks[_number(first) + i] = raw[i * _DIGEST : (i + 1) * _DIGEST]
            case {"record": "events", "segment": segment, "events": count} if plan is not None:
                events[_number(segment)] = _number(count)
            case {"record": kind} if kind in rolling.RECORDS and plan is not None and plan.append:
                roll, target = rolling.after(roll, target, record)
            case _:
                raise JournalDamaged(
                    f"the copy's journal has a record that this version does not know:"
                    f" {str(record)[:_SHOWN]}",
                    remedy="Run it with the version of Sluice that began it, or abort the copy.",
                )
    return None if plan is None else Journal(plan, target, digests, events, amended, drained, roll)


def _is_late(record: Mapping[str, Any], amended: Mapping[int, SegmentPlan]) -> bool:
    """Whether a record is of a segment that was begun anew since it was learnt."""
    segment = amended.get(_number(record["segment"]))
    return bool(record.get("edition", 0) != (segment.edition if segment else 0))


def _number(value: object) -> int:
    """A number as it stands in a record; anything else is damage."""
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is no number of a record")
    return value
