"""The journal: the records that a copy keeps in the target store while it runs.

The journal is a segment of its own, named from the copy id. Drivers append records one at a time,
by compare-and-set on its length. The first record is the plan: the driver that writes it decides
the bounds for all drivers. `core.copy.record_frames` has the bytes of a record.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from sluice.core.copy import append_progress, follow_folding, follow_progress
from sluice.core.copy.append_progress import Roll
from sluice.core.copy.follow_folding import TrailFolding
from sluice.core.copy.follow_progress import Trail
from sluice.core.copy.plan import SegmentPlan, StreamPlan, in_order
from sluice.core.copy.record_frames import SHOWN
from sluice.core.events.digest import chunk_of
from sluice.errors import JournalDamaged

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from sluice.core.events.chain import Link

_DIGEST = 32


@dataclass(frozen=True, slots=True)
class Journal:
    """The content of a journal.

    Attributes:
        plan: the plan as it was recorded.
        target: ids of the target's segments, in the plan's order, once they are recorded. For an
            append: ids of the segments beside which bytes are staged.
        digests: per segment of the plan, the runs of source chunks hashed so far: the first chunk
            of each run, and the SHA-256 digests of its chunks in a row. See `known`.
        events: per segment of the plan, the exact number of events, once they are counted.
        amended: the segments with other bounds than planned, by their index in the plan.
        drained: for a move, the segments that the source got after it was planned; None until the
            source is sealed.
        roll: the progress of an append.
        trail: the progress of following the source.
    """

    plan: StreamPlan
    target: tuple[int, ...] | None = None
    digests: Mapping[int, Sequence[tuple[int, bytes]]] = field(default_factory=dict)
    events: Mapping[int, int] = field(default_factory=dict)
    amended: Mapping[int, SegmentPlan] = field(default_factory=dict)
    drained: tuple[SegmentPlan, ...] | None = None

    roll: Roll = field(default_factory=Roll)
    trail: Trail = field(default_factory=Trail)

    @property
    def current(self) -> StreamPlan:
        """The plan with its amendments: without bytes that the source lost, up to where it ends.

        The segments of a followed source's scale events hold no planned bytes.
        """
        later = (*(self.drained or ()), *self.trail.grown)
        if not self.amended and not later:
            return self.plan
        planned = (*self.plan.segments, *later)
        return self.plan.of([self.amended.get(i, one) for i, one in enumerate(planned)])

    def known(self, segment: int) -> dict[int, bytes]:
        """Return the SHA-256 of each source chunk of a segment that was hashed so far."""
        return {
            first + i: raw[i * _DIGEST : (i + 1) * _DIGEST]
            for first, raw in self.digests.get(segment, ())
            for i in range(len(raw) // _DIGEST)
        }


def plan_record(plan: StreamPlan) -> dict[str, Any]:
    """Return the record of the plan, which decides the bounds; always the first record."""
    return {"record": "plan", "plan": plan.model_dump(mode="json")}


def target_record(segments: Iterable[int]) -> dict[str, Any]:
    """Return the record of the ids of the target's segments, in the plan's order."""
    return {"record": "target", "segments": list(segments)}


def amend_record(segment: int, edition: int, to: int) -> dict[str, Any]:
    """Return the record that the source has lost a segment's bytes before `to`.

    It counts only if the segment still has this edition.
    """
    return {"record": "amend", "segment": segment, "edition": edition, "to": to}


def drain_record(
    ends: Iterable[tuple[int, int | None]], later: Iterable[SegmentPlan], target: Iterable[int]
) -> dict[str, Any]:
    """Return the record of where a sealed source ends; of several records the first counts.

    Args:
        ends: for each segment of the plan its end, and the number of events up to there; None if
            that is unknown.
        later: segments that the source got after the plan was made.
        target: ids of the target's segments for the later ones.
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
    """Return the record of the SHA-256 of consecutive source chunks, from chunk `first` on.

    A segment's first and last chunk depend on its bounds, so digests count for one edition only.
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
    """Return the records of digests of any chunks of a segment, one for each consecutive row."""
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
    """Return the record of the number of events that were counted in a segment."""
    return {"record": "events", "segment": segment, "events": events, **_of(edition)}


def checkpoint_record(journal: Journal, proved: Mapping[int, Link]) -> dict[str, Any]:
    """Return the record that stands for all before it, of a copy that follows its source.

    Args:
        journal: the journal. All planned bytes are readable in the target, so the digests of their
            chunks are needed no more.
        proved: for each segment of the plan, the digest up to where it is compared.
    """
    return {
        "record": "checkpoint",
        "plan": journal.plan.model_dump(mode="json"),
        "target": list(journal.target or ()),
        "events": [[place, count] for place, count in journal.events.items()],
        "amended": [
            [
                place,
                segment.model_dump(mode="json")
                | {"lost": segment.lost, "attempt": segment.attempt, "edition": segment.edition},
            ]
            for place, segment in journal.amended.items()
        ],
        "trail": follow_progress.trail_body(replace(journal.trail, proved=proved)),
    }


def fold(records: Iterable[Mapping[str, Any]]) -> Journal | None:
    """Return the journal that these records make; None if there are none. See `Folding`."""
    folding = Folding()
    for record in records:
        folding.add(record)
    return folding.journal


class Folding:
    """Builds a journal from its records, one at a time, without keeping them.

    Later records of a kind add to earlier ones; a repeated target record changes nothing.
    """

    def __init__(self) -> None:
        self._plan: StreamPlan | None = None
        self._target: tuple[int, ...] | None = None
        self._digests: dict[int, list[tuple[int, bytes]]] = {}
        self._events: dict[int, int] = {}
        self._amended: dict[int, SegmentPlan] = {}
        self._drained: tuple[SegmentPlan, ...] | None = None
        self._roll = Roll()
        self._trail = TrailFolding()
        self._journal: Journal | None = None

    @property
    def journal(self) -> Journal | None:
        """The journal so far; None before the first record."""
        if self._journal is None and self._plan is not None:
            self._journal = Journal(
                self._plan,
                self._target,
                {segment: tuple(runs) for segment, runs in self._digests.items()},
                dict(self._events),
                dict(self._amended),
                self._drained,
                self._roll,
                self._trail.trail,
            )
        return self._journal

    def add(self, record: Mapping[str, Any]) -> None:
        """Apply the next record.

        Raises:
            JournalDamaged: the first record is not a plan, or this one is unknown or damaged.
        """
        self._journal = None
        try:
            self._add(record)
        except (ValueError, TypeError, KeyError, IndexError) as error:
            raise JournalDamaged(f"the copy's journal has a damaged record: {error}") from error

    def _add(self, record: Mapping[str, Any]) -> None:  # noqa: C901, PLR0912 - one case for each record
        match record:
            case {"record": "plan", "plan": body} if self._plan is None:
                self._plan = StreamPlan.model_validate(body)
                return
            case {"record": "checkpoint"} if self._plan is None or self._plan.follow:
                if self._plan is None:  # else it says what is known
                    self._restore(record)
                return
            case _ if self._plan is None:
                raise _unknown(record)
        plan = self._plan
        match record:
            case {"record": "target", "segments": ids}:
                self._target = self._target or _ids(ids, len(plan.segments))
            case {"record": "drain", "ends": ends, "segments": later, "target": ids} if (
                self._target is not None
            ):
                if self._drained is None:
                    self._drained = tuple(map(SegmentPlan.model_validate, later))
                    self._target = (*self._target, *_ids(ids, len(self._drained)))
                    in_order([*plan.segments, *self._drained])
                    self._drain(plan, ends)
            case {"record": "amend", "segment": segment, "edition": edition, "to": to}:
                self._amend(plan, _number(segment), edition, _number(to))
            case {"record": "digests" | "events"} if _is_late(record, self._amended):
                pass
            case {"record": "digests", "segment": segment, "first": first, "sha256": text}:
                raw = bytes.fromhex(text)
                if len(raw) % _DIGEST:
                    raise ValueError(f"{len(raw)} bytes are no SHA-256 digests")
                self._digests.setdefault(_number(segment), []).append((_number(first), raw))
            case {"record": "events", "segment": segment, "events": count}:
                self._events[_number(segment)] = _number(count)
            case {"record": kind} if kind in append_progress.RECORDS and plan.append:
                self._roll, self._target = append_progress.after(self._roll, self._target, record)
            case {"record": kind} if kind in follow_folding.RECORDS and plan.follow:
                self._follow(plan, record)
            case _:
                raise _unknown(record)

    def _restore(self, record: Mapping[str, Any]) -> None:
        plan = StreamPlan.model_validate(record["plan"])
        if not plan.follow:
            raise ValueError("the copy does not follow its source, and has a checkpoint")
        self._trail.restore(plan, record["trail"])
        count = len(in_order([*plan.segments, *self._trail.trail.grown]))
        self._target = _ids(record["target"], count)
        self._events = {_number(place): _number(count) for place, count in record["events"]}
        self._amended = {
            _number(place): SegmentPlan.model_validate(body) for place, body in record["amended"]
        }
        self._plan = plan

    def _follow(self, plan: StreamPlan, record: Mapping[str, Any]) -> None:
        if self._target is None:
            raise ValueError("the target's segments are not recorded")
        if made := self._trail.add(plan, record):
            self._target = (*self._target, *made)

    def _drain(self, plan: StreamPlan, ends: Sequence[tuple[object, int | None]]) -> None:
        for place, (end, count) in enumerate(ends):
            now = self._amended.get(place) or plan.segments[place]
            self._amended[place] = now.until(_number(end), count)
            if end != now.end:  # a last chunk that was not whole is longer now: hash it again
                runs = self._digests.get(place, [])
                runs[:] = _without(runs, chunk_of(now.end))

    def _amend(self, plan: StreamPlan, segment: int, edition: object, to: int) -> None:
        planned = (*plan.segments, *(self._drained or ()))
        now = self._amended.get(segment) or planned[segment]
        if edition == now.edition and now.start < to <= now.end:
            self._amended[segment] = now.without(to)
            self._digests.pop(segment, None)
            self._events.pop(segment, None)


def _without(runs: Iterable[tuple[int, bytes]], chunk: int) -> Iterator[tuple[int, bytes]]:
    """Yield runs of digests without the digest of one chunk."""
    for first, raw in runs:
        at = (chunk - first) * _DIGEST
        if not 0 <= at < len(raw):
            yield first, raw
            continue
        if at:
            yield first, raw[:at]
        if rest := raw[at + _DIGEST :]:
            yield chunk + 1, rest


def _unknown(record: Mapping[str, Any]) -> JournalDamaged:
    return JournalDamaged(
        f"the copy's journal has a record that this version does not know: {str(record)[:SHOWN]}",
        remedy="Run it with the version of Sluice that began it, or abort the copy.",
    )


def _is_late(record: Mapping[str, Any], amended: Mapping[int, SegmentPlan]) -> bool:
    """Tell whether a record is about an edition of a segment that no longer holds."""
    segment = amended.get(_number(record["segment"]))
    return bool(record.get("edition", 0) != (segment.edition if segment else 0))


def _ids(values: Sequence[object], count: int) -> tuple[int, ...]:
    """Return the ids of so many segments, or raise ValueError if a record has others."""
    if len(values) != count:
        raise ValueError(f"{len(values)} ids of {count} segments")
    return tuple(map(_number, values))


def _number(value: object) -> int:
    """Return a number of a record, or raise ValueError if it is damaged."""
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is no number of a record")
    return value
