"""The progress of a copy that follows its source, as its journal records it.

How far a segment is followed is not in the journal: an attribute of the target's segment says so,
which the store sets with each append. The journal has what changes the way: scale events of the
source, bytes that it lost, the end; and how far the target was read back and compared.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sluice.core.copy.plan import SegmentPlan
from sluice.core.events.chain import Link
from sluice.core.events.digest import CHUNK
from sluice.core.values.wish import Wish, wish_body

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sluice.core.copy.plan import StreamPlan


_PROOF: Final = 64
"""Characters of the longest consent."""


_SEALINGS: Final = 100
"""Most consents to seal the source that are kept. Any client can record some that are none."""


class Loss(NamedTuple):
    """Bytes [start, end) of a source's segment that were lost before they were followed."""

    start: int
    end: int


class Consent(NamedTuple):
    """What a record claims to prove: that the source may be sealed (`core.values.wish.consent`).

    Attributes:
        number: how many wishes were recorded before the one that it is about.
        proof: the proof, which is not checked yet.
    """

    number: int
    proof: str


@dataclass(frozen=True, slots=True)
class Trail:
    """The progress of following a source. Segments are named by their index in the plan.

    Attributes:
        grown: the segments of the source's scale events since the plan, which extend the plan.
        lost: for each segment, the bytes that are left out, in order.
        proved: for each segment, the digest up to where the target was compared with the source.
        blind: for each segment, the bytes of `proved` that the source had lost before they were
            compared.
        taken: for each segment, the bytes of `proved` that the target had lost before they were
            compared, by its retention.
        left: whether the copy was ended while it was live.
        stopped: why nothing more is followed; None until then.
        wishes: the number of wishes that were recorded.
        wish: the last one before the end.
        consent: what was recorded with it, if it is to seal the source.
        sealing: the consents by which it was recorded that the source is sealed now. Those that are
            the owner's decide it.
    """

    grown: tuple[SegmentPlan, ...] = ()
    lost: Mapping[int, tuple[Loss, ...]] = field(default_factory=dict)
    proved: Mapping[int, Link] = field(default_factory=dict)
    blind: Mapping[int, int] = field(default_factory=dict)
    stopped: str | None = None
    wishes: int = 0
    wish: Wish = field(default_factory=Wish)
    consent: Consent | None = None
    sealing: tuple[Consent, ...] = ()
    taken: Mapping[int, int] = field(default_factory=dict)
    left: bool = False


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


def proved_record(segment: int, link: Link, blind: int = 0, taken: int = 0) -> dict[str, Any]:
    """Return the record that a segment's bytes in the target are those of the source.

    Args:
        segment: the segment.
        link: the digest of all of its bytes so far.
        blind: how many of those since the last record the source had lost before.
        taken: how many of those since the last record the target had lost before.
    """
    return {
        "record": "proved",
        "segment": segment,
        "to": link.offset,
        "chain": link.chain.hex(),
        "rest": link.rest.hex(),
        "held": link.held,
        **({"blind": blind} if blind else {}),
        **({"taken": taken} if taken else {}),
    }


def stop_record(why: str, sealings: int = 0) -> dict[str, Any]:
    """Return the record that nothing more is followed; the first one holds.

    Args:
        why: the reason.
        sealings: how many consents to seal the source are recorded so far. The record counts only
            if none comes between: then the copy has to go on to the source's end.
    """
    return {"record": "stop", "why": why, **({"sealings": sealings} if sealings else {})}


def wish_record(number: int, wish: Wish, proof: str = "") -> dict[str, Any]:
    """Return the record of how the copy is to end.

    Args:
        number: how many wishes are recorded so far; the first record of a number holds.
        wish: the wish.
        proof: the consent of the copy's owner, if the source is to be sealed.
    """
    return {
        "record": "wish",
        "number": number,
        "wish": wish_body(wish),
        **({"consent": proof} if proof else {}),
    }


def sealing_record() -> dict[str, Any]:
    """Return the record that the source is sealed now, by the present wish, which decides it.

    It counts only if the present wish is to seal the source.
    """
    return {"record": "sealing"}


def leave_record() -> dict[str, Any]:
    """Return the record that the copy is ended while it is live: no driver goes on with it."""
    return {"record": "leave"}


def trail_body(trail: Trail) -> dict[str, Any]:
    """Return a trail as a part of a record; see `TrailFolding.restore`."""
    return {
        "grown": [segment.model_dump(mode="json") for segment in trail.grown],
        "lost": [[place, *loss] for place, losses in trail.lost.items() for loss in losses],
        "proved": [
            [place, link.offset, link.chain.hex(), link.rest.hex(), link.held]
            for place, link in trail.proved.items()
        ],
        "blind": [[place, count] for place, count in trail.blind.items() if count],
        "taken": [[place, count] for place, count in trail.taken.items() if count],
        "stopped": trail.stopped,
        **({"left": True} if trail.left else {}),
        **_wish_body(trail),
    }


def _wish_body(trail: Trail) -> dict[str, Any]:
    if not trail.wishes:
        return {}
    return {
        "wishes": trail.wishes,
        "wish": wish_body(trail.wish),
        **({"consent": list(trail.consent)} if trail.consent else {}),
        **({"sealing": [list(one) for one in trail.sealing]} if trail.sealing else {}),
    }


RECORDS = ("grow", "skip", "proved", "stop", "wish", "sealing", "leave")


class TrailFolding:
    """Builds a trail from its records, one at a time.

    A record takes no longer if there are many before it: any client that may write to the target's
    scope could have written them.
    """

    def __init__(self) -> None:
        self._grown: list[SegmentPlan] = []
        self._lost: defaultdict[int, list[Loss]] = defaultdict(list)
        self._proved: dict[int, Link] = {}
        self._blind: dict[int, int] = {}
        self._stopped: str | None = None
        self._wishes = 0
        self._wish = Wish()
        self._consent: Consent | None = None
        self._sealing: list[Consent] = []
        self._taken: dict[int, int] = {}
        self._left = False

    @property
    def trail(self) -> Trail:
        """The trail so far."""
        return Trail(
            tuple(self._grown),
            {place: tuple(losses) for place, losses in self._lost.items()},
            dict(self._proved),
            dict(self._blind),
            self._stopped,
            self._wishes,
            self._wish,
            self._consent,
            tuple(self._sealing),
            taken=dict(self._taken),
            left=self._left,
        )

    def restore(self, body: Mapping[str, Any]) -> None:
        """Take over the trail that `trail_body` wrote. Raises ValueError, TypeError, KeyError."""
        self._grown = list(map(SegmentPlan.model_validate, body["grown"]))
        for place, start, end in body["lost"]:
            self._lost[_number(place)].append(Loss(_number(start), _number(end)))
        self._proved = {_number(place): _link(*link) for place, *link in body["proved"]}
        self._blind = {_number(place): _number(count) for place, count in body["blind"]}
        self._taken = {_number(place): _number(count) for place, count in body.get("taken", ())}
        self._left = body.get("left", False) is True
        match body["stopped"]:
            case None | str() as why:
                self._stopped = why
            case why:
                raise ValueError(f"{why!r} is no reason of an end")
        if "wishes" in body:
            self._wishes = _number(body["wishes"])
            self._wish = Wish.model_validate(body["wish"])
            self._consent = _consent(body.get("consent"))
            self._sealing = [one for one in map(_consent, body.get("sealing", ())) if one]

    def add(self, plan: StreamPlan, record: Mapping[str, Any]) -> tuple[int, ...]:
        """Apply the next record.

        Args:
            plan: the plan as it was recorded.
            record: the record.

        Returns:
            Ids of the target's segments that the record adds.

        Raises:
            ValueError, TypeError, KeyError: the record is damaged.
        """
        match record:
            case {"record": "proved", "segment": place, "to": to, "chain": chain, "rest": rest}:
                link = _link(to, chain, rest, record["held"])
                unseen = _number(record.get("blind", 0)), _number(record.get("taken", 0))
                self._prove(self._place(place, plan), link, *unseen)
            case {"record": "leave"}:
                self._left = True
            case {"record": "grow" | "skip" | "stop" | "wish" | "sealing"} if (
                self._stopped is not None
            ):
                pass  # of a driver that has not seen the end
            case {"record": "stop", "why": str(why)}:
                if _number(record.get("sealings", 0)) == len(self._sealing):
                    self._stopped = why
            case {"record": "grow", "segments": made, "target": ids}:
                return self._grow(plan, list(map(SegmentPlan.model_validate, made)), ids)
            case {"record": "skip", "segment": place, "number": number, "start": start, "end": end}:
                loss = Loss(_number(start), _number(end))
                self._lose(self._place(place, plan), number, loss)
            case {"record": "wish", "number": number, "wish": body}:
                wish = Wish.model_validate(body)
                self._hear(_number(number), wish, record.get("consent"))
            case {"record": "sealing"}:
                self._seal()
            case _:
                raise ValueError(f"{record['record']} is no whole record")
        return ()

    def _seal(self) -> None:
        known = self._consent in self._sealing
        if self._consent is not None and not known and len(self._sealing) < _SEALINGS:
            self._sealing.append(self._consent)  # without one, the wish has changed

    def _prove(self, place: int, link: Link, blind: int, taken: int) -> None:
        before = self._proved.get(place)
        if before is None or link.offset > before.offset:
            self._proved[place] = link
            self._blind[place] = self._blind.get(place, 0) + blind
            if taken:
                self._taken[place] = self._taken.get(place, 0) + taken

    def _grow(
        self, plan: StreamPlan, made: Sequence[SegmentPlan], ids: Sequence[object]
    ) -> tuple[int, ...]:
        if not made or len(made) != len(ids):
            raise ValueError(f"{len(made)} segments, and {len(ids)} of the target")
        last = self._grown[-1].generation if self._grown else len(plan.generations) - 1
        if any(segment.generation != last + 1 for segment in made):
            return ()  # another driver has recorded this scale event
        self._grown += made
        return tuple(map(_number, ids))

    def _lose(self, place: int, number: object, loss: Loss) -> None:
        before = self._lost.get(place, [])
        behind = before[-1].end if before else 0
        if number == len(before) and behind <= loss.start < loss.end:
            self._lost[place].append(loss)  # else another driver has recorded this loss

    def _hear(self, number: int, wish: Wish, proof: object) -> None:
        claimed = _consent([number, proof or ""])
        if number == self._wishes:  # else another client was faster to wish
            self._wishes, self._wish = number + 1, wish
            self._consent = claimed if wish.cutover == "SealAndDrain" else None

    def _place(self, value: object, plan: StreamPlan) -> int:
        """Return the index of a segment, or raise ValueError if there is none."""
        place = _number(value)
        if place >= len(plan.segments) + len(self._grown):
            raise ValueError(f"the plan has no segment {value}")
        return place


def _link(to: object, chain: str, rest: str, held: object) -> Link:
    """Return a recorded link, or raise ValueError if its last bytes are no part of a chunk."""
    link = Link(_number(to), bytes.fromhex(chain), bytes.fromhex(rest), _number(held))
    if link.held > min(link.offset, CHUNK):  # they are read again
        raise ValueError(f"{held} bytes before {to} are no part of a chunk")
    return link


def _consent(value: object) -> Consent | None:
    """Return a recorded consent, or raise ValueError if it cannot be one."""
    match value:
        case None:
            return None
        case [number, str(proof)] if len(proof) <= _PROOF:
            return Consent(_number(number), proof)
    raise ValueError("a consent is damaged")


def _number(value: object) -> int:
    """Return a number of a record, or raise ValueError if it is damaged."""
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is no number of a record")
    return value
