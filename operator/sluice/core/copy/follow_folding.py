"""Build the progress of following a source from the records of a journal."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from sluice.core.copy.follow_progress import Consent, Loss, RecordedCatchUp, Trail
from sluice.core.copy.plan import SegmentPlan
from sluice.core.events.chain import Link
from sluice.core.events.digest import CHUNK
from sluice.core.values.wish import Wish

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sluice.core.copy.plan import StreamPlan

RECORDS = (
    "grow",
    "skip",
    "proved",
    "stop",
    "wish",
    "sealing",
    "change",
    "changed",
    "scaled",
    "catch-up",
    "caught-up",
    "leave",
)
"""The kinds of records that a trail is built from."""

_PROOF: Final = 64
"""Characters of the longest consent."""

_SEALINGS: Final = 100
"""Most consents to seal the source that are kept. Any client can record some that are none."""

_CHANGES: Final = 100
"""Most announced changes that are kept, the last ones. A driver has one at a time."""

_TOKEN: Final = 32
"""Characters of the longest name of an announced change."""


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
        self._changes: list[str] = []
        self._scaled = 0
        self._catch_up: RecordedCatchUp | None = None
        self._caught_up = 0

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
            changes=tuple(self._changes),
            scaled=self._scaled,
            catch_up=self._catch_up,
            caught_up=self._caught_up,
        )

    def restore(self, plan: StreamPlan, body: Mapping[str, Any]) -> None:
        """Take over the trail that `trail_body` wrote. Raises ValueError, TypeError, KeyError."""
        self._grown = list(map(SegmentPlan.model_validate, body["grown"]))
        for place, start, end in body["lost"]:
            self._lost[_number(place)].append(Loss(_number(start), _number(end)))
        self._proved = {_number(place): _link(*link) for place, *link in body["proved"]}
        self._blind = {_number(place): _number(count) for place, count in body["blind"]}
        self._taken = {_number(place): _number(count) for place, count in body.get("taken", ())}
        self._left = body.get("left", False) is True
        self._changes = [_token(name) for name in body.get("changes", ())]
        self._scaled = _number(body.get("scaled", 0))
        if "catch-up" in body:
            self._catch_up = self._checked(plan, _catch_up(body["catch-up"]))
            self._caught_up = _number(body.get("caught-up", 0))
            if not 0 <= self._caught_up - self._catch_up.number <= 1:
                raise ValueError(f"{self._caught_up} catch-ups are over")
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

    def add(self, plan: StreamPlan, record: Mapping[str, Any]) -> tuple[int, ...]:  # noqa: C901, PLR0912 - one case for each record
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
            case {"record": "change" | "changed" as kind, "name": name}:
                self._change(_token(name), begins=kind == "change")
            case {"record": "scaled", "generation": generation}:
                self._scaled = max(self._scaled, _number(generation))
            case {"record": "caught-up", "number": number}:
                if self._catch_up is not None and self._catch_up.number == _number(number):
                    self._caught_up = self._catch_up.number + 1
            case {"record": "grow" | "skip" | "stop" | "wish" | "sealing" | "catch-up"} if (
                self._stopped is not None
            ):
                pass  # of a driver that has not seen the end
            case {"record": "catch-up"}:
                self._begin(self._checked(plan, _catch_up(record)))
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

    def _checked(self, plan: StreamPlan, catch_up: RecordedCatchUp) -> RecordedCatchUp:
        """Return a catch-up, or raise ValueError if it is about other segments than the plan."""
        segments = (*plan.segments, *self._grown)
        for row, one in zip(catch_up.rows, catch_up.segments, strict=True):
            known = segments[self._place(row, plan)]
            if (one.id, one.created, one.keys) != (known.id, known.created, known.keys):
                raise ValueError(f"segment {one.id} of a catch-up is not that of the plan")
        return catch_up

    def _begin(self, catch_up: RecordedCatchUp) -> None:
        before = -1 if self._catch_up is None else self._catch_up.number
        if catch_up.number == before + 1 == self._caught_up:
            self._catch_up = catch_up  # else another driver has begun one

    def _change(self, name: str, *, begins: bool) -> None:
        self._changes = [one for one in self._changes if one != name]
        if begins:
            self._changes = [*self._changes[1 - _CHANGES :], name]

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


def _catch_up(body: Mapping[str, Any]) -> RecordedCatchUp:
    """Return a recorded catch-up, or raise ValueError if it cannot be one."""
    rows = tuple(map(_number, body["rows"]))
    segments = tuple(map(SegmentPlan.model_validate, body["segments"]))
    if not rows or len(set(rows)) != len(rows) or len(rows) != len(segments):
        raise ValueError(f"a catch-up of {len(segments)} segments names {rows}")
    for one in segments:
        if one.generation or one.source or not 0 <= one.start < one.end:
            raise ValueError(f"a catch-up has no bytes of segment {one.id}")
    return RecordedCatchUp(_number(body["number"]), rows, segments)


def _consent(value: object) -> Consent | None:
    """Return a recorded consent, or raise ValueError if it cannot be one."""
    match value:
        case None:
            return None
        case [number, str(proof)] if len(proof) <= _PROOF:
            return Consent(_number(number), proof)
    raise ValueError("a consent is damaged")


def _token(value: object) -> str:
    """Return the name of an announced change, or raise ValueError if it cannot be one."""
    if not isinstance(value, str) or len(value) > _TOKEN:
        raise ValueError("the name of a change is damaged")
    return value


def _number(value: object) -> int:
    """Return a number of a record, or raise ValueError if it is damaged."""
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is no number of a record")
    return value
