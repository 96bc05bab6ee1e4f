"""The progress of a copy that follows its source, as its journal records it.

How far a segment is followed is not in the journal: an attribute of the target's segment says so,
which the store sets with each append. The journal has what changes the way: scale events of the
source, bytes that it lost, the end; and how far the target was read back and compared.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from sluice.core.copy.plan import SegmentPlan
from sluice.core.events.chain import Link

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sluice.core.copy.plan import StreamPlan


class Loss(NamedTuple):
    """Bytes [start, end) of a source's segment that were lost before they were followed."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Trail:
    """The progress of following a source. Segments are named by their index in the plan.

    Attributes:
        grown: the segments of the source's scale events since the plan, which extend the plan.
        lost: for each segment, the bytes that are left out, in order.
        proved: for each segment, the digest up to where the target was compared with the source.
        blind: for each segment, the bytes of `proved` that the source had lost before they were
            compared.
        stopped: why nothing more is followed; None until then.
    """

    grown: tuple[SegmentPlan, ...] = ()
    lost: Mapping[int, tuple[Loss, ...]] = field(default_factory=dict)
    proved: Mapping[int, Link] = field(default_factory=dict)
    blind: Mapping[int, int] = field(default_factory=dict)
    stopped: str | None = None


def grow_record(segments: Iterable[SegmentPlan], target: Iterable[int]) -> dict[str, Any]:
    """Return the record of a scale event of the source; of several of a generation the first holds.

    Args:
        segments: the segments that it made, of one generation.
        target: the ids of the target's segments for them.
    """
    return {
        "record": "grow",
        "segments": [segment.model_dump(mode="json") for segment in segments],
        "target": list(target),
    }


def skip_record(segment: int, number: int, loss: Loss) -> dict[str, Any]:
    """Return the record of bytes that are left out.

    Args:
        segment: the segment.
        number: how many losses of it are recorded so far; the first record of a number holds.
        loss: the bytes.
    """
    return {
        "record": "skip",
        "segment": segment,
        "number": number,
        "start": loss.start,
        "end": loss.end,
    }


def proved_record(segment: int, link: Link, blind: int = 0) -> dict[str, Any]:
    """Return the record that a segment's bytes in the target are those of the source.

    Args:
        segment: the segment.
        link: the digest of all of its bytes so far.
        blind: how many of those since the last record the source had lost before.
    """
    return {
        "record": "proved",
        "segment": segment,
        "to": link.offset,
        "chain": link.chain.hex(),
        "rest": link.rest.hex(),
        "held": link.held,
        **({"blind": blind} if blind else {}),
    }


def stop_record(why: str) -> dict[str, Any]:
    """Return the record that nothing more is followed; the first one holds."""
    return {"record": "stop", "why": why}


def trail_body(trail: Trail) -> dict[str, Any]:
    """Return a trail as a part of a record; see `trail_of`."""
    return {
        "grown": [segment.model_dump(mode="json") for segment in trail.grown],
        "lost": [[place, *loss] for place, losses in trail.lost.items() for loss in losses],
        "proved": [
            [place, link.offset, link.chain.hex(), link.rest.hex(), link.held]
            for place, link in trail.proved.items()
        ],
        "blind": [[place, count] for place, count in trail.blind.items() if count],
        "stopped": trail.stopped,
    }


def trail_of(body: Mapping[str, Any]) -> Trail:
    """Return the trail that `trail_body` wrote. Raises ValueError, TypeError, KeyError."""
    lost: dict[int, tuple[Loss, ...]] = {}
    for place, start, end in body["lost"]:
        lost[_number(place)] = (*lost.get(place, ()), Loss(_number(start), _number(end)))
    return Trail(
        grown=tuple(map(SegmentPlan.model_validate, body["grown"])),
        lost=lost,
        proved={
            _number(place): Link(
                _number(to), bytes.fromhex(chain), bytes.fromhex(rest), _number(held)
            )
            for place, to, chain, rest, held in body["proved"]
        },
        blind={_number(place): _number(count) for place, count in body["blind"]},
        stopped=body["stopped"],
    )


RECORDS = ("grow", "skip", "proved", "stop")


def after(
    trail: Trail, plan: StreamPlan, bound: tuple[int, ...], record: Mapping[str, Any]
) -> tuple[Trail, tuple[int, ...]]:
    """Apply a record.

    Args:
        trail: the progress before the record.
        plan: the plan with all of its segments so far.
        bound: ids of the target's segments before the record.
        record: the record.

    Returns:
        Both after the record.

    Raises:
        ValueError, TypeError, KeyError: the record is damaged.
    """
    match record:
        case {"record": "proved", "segment": place, "to": to, "chain": chain, "rest": rest}:
            link = Link(
                _number(to), bytes.fromhex(chain), bytes.fromhex(rest), _number(record["held"])
            )
            return _proved(trail, _place(place, plan), link, record.get("blind", 0)), bound
        case {"record": "grow" | "skip" | "stop"} if trail.stopped is not None:
            return trail, bound  # of a driver that has not seen the end
        case {"record": "stop", "why": str(why)}:
            return replace(trail, stopped=why), bound
        case {"record": "grow", "segments": made, "target": ids}:
            return _grown(trail, plan, bound, list(map(SegmentPlan.model_validate, made)), ids)
        case {"record": "skip", "segment": place, "number": number, "start": start, "end": end}:
            loss = Loss(_number(start), _number(end))
            return _lost(trail, _place(place, plan), number, loss), bound
        case _:
            raise ValueError(f"{record['record']} is no whole record")


def _proved(trail: Trail, place: int, link: Link, blind: int) -> Trail:
    before = trail.proved.get(place)
    if before is not None and link.offset <= before.offset:
        return trail
    return replace(
        trail,
        proved={**trail.proved, place: link},
        blind={**trail.blind, place: trail.blind.get(place, 0) + _number(blind)},
    )


def _grown(
    trail: Trail, plan: StreamPlan, bound: tuple[int, ...], made: list[SegmentPlan], ids: list[int]
) -> tuple[Trail, tuple[int, ...]]:
    if not made or len(made) != len(ids):
        raise ValueError(f"{len(made)} segments, and {len(ids)} of the target")
    if any(segment.generation != len(plan.generations) for segment in made):
        return trail, bound  # another driver has recorded this scale event
    return replace(trail, grown=(*trail.grown, *made)), (*bound, *map(_number, ids))


def _lost(trail: Trail, place: int, number: int, loss: Loss) -> Trail:
    before = trail.lost.get(place, ())
    behind = before[-1].end if before else 0
    if number != len(before) or not behind <= loss.start < loss.end:
        return trail  # another driver has recorded this loss
    return replace(trail, lost={**trail.lost, place: (*before, loss)})


def _place(value: object, plan: StreamPlan) -> int:
    """Return the index of a segment in the plan, or raise ValueError if there is none."""
    if _number(value) >= len(plan.segments):
        raise ValueError(f"the plan has no segment {value}")
    return _number(value)


def _number(value: object) -> int:
    """Return a number of a record, or raise ValueError if it is damaged."""
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is no number of a record")
    return value
