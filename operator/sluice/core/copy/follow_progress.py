"""The progress of a copy that follows its source, as its journal records it.

How far a segment is followed is not in the journal: an attribute of the target's segment says so,
which the store sets with each append. The journal has what changes the way: scale events of the
source, bytes that it lost, the end; and how far the target was read back and compared.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from sluice.core.values.wish import Wish, wish_body

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sluice.core.copy.plan import SegmentPlan
    from sluice.core.events.chain import Link


class Loss(NamedTuple):
    """Bytes [start, end) of a source's segment that were lost before they were followed."""

    start: int
    end: int


class RecordedCatchUp(NamedTuple):
    """Bytes that are staged, verified and merged, since the target was far behind.

    Attributes:
        number: how many catch-ups came before.
        rows: for each of its segments, the index of the segment in the copy's plan.
        segments: its segments. Each begins at the position that the target's segment had.
    """

    number: int
    rows: tuple[int, ...]
    segments: tuple[SegmentPlan, ...]


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
        changes: the changes of the target's configuration that drivers have announced, and that
            may still come. Each has a name of its own.
        scaled: the generation to which the target is scaled by now, or may be at any moment.
        catch_up: the last catch-up that was begun; None before the first.
        caught_up: how many of them are over.
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
    changes: tuple[str, ...] = ()
    scaled: int = 0
    catch_up: RecordedCatchUp | None = None
    caught_up: int = 0

    @property
    def catches_up(self) -> bool:
        """Whether a catch-up is begun and not over."""
        return self.catch_up is not None and self.catch_up.number == self.caught_up


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


def change_record(name: str) -> dict[str, Any]:
    """Return the record that a driver is about to change the target's configuration."""
    return {"record": "change", "name": name}


def changed_record(name: str) -> dict[str, Any]:
    """Return the record that such a change has come, or does not come any more."""
    return {"record": "changed", "name": name}


def scaled_record(generation: int) -> dict[str, Any]:
    """Return the record that a driver is about to scale the target to a generation."""
    return {"record": "scaled", "generation": generation}


def catch_up_record(catch_up: RecordedCatchUp) -> dict[str, Any]:
    """Return the record that a catch-up begins; of several with a number the first holds."""
    return {"record": "catch-up", **_catch_up_body(catch_up)}


def caught_up_record(number: int) -> dict[str, Any]:
    """Return the record that a catch-up is over, and nothing of it is left."""
    return {"record": "caught-up", "number": number}


def _catch_up_body(catch_up: RecordedCatchUp) -> dict[str, Any]:
    return {
        "number": catch_up.number,
        "rows": list(catch_up.rows),
        "segments": [segment.model_dump(mode="json") for segment in catch_up.segments],
    }


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
        **({"changes": list(trail.changes)} if trail.changes else {}),
        **({"scaled": trail.scaled} if trail.scaled else {}),
        **({"catch-up": _catch_up_body(trail.catch_up)} if trail.catch_up else {}),
        **({"caught-up": trail.caught_up} if trail.caught_up else {}),
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
