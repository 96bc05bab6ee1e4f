"""The log of a scope's copy, which its drivers write: its plan, and the result of each stream.

The first record is a plan, so the driver that writes it first decides for all drivers. Results
follow as streams end, and count for their run. Once a run is over, the plan of a later run may
follow, for the streams that failed or were stopped. Where streams are followed, others may join
until the run is over; that all of its plan are followed is recorded, and so are the owner's wishes
how the copy is to end. Records are framed as in a copy's journal.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from sluice.core.copy.record_frames import SHOWN
from sluice.core.scope.scope import Counts, StreamResult, StreamState, counts_of
from sluice.core.values.wish import SealClaim, Wish, wish_body
from sluice.core.workloads.plan import compressed, expanded
from sluice.errors import JournalDamaged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from sluice.core.workloads.plan import ScopeCopyPlan

FINAL = (StreamState.COPIED, StreamState.FAILED)
"""States of streams that the log records. The other states follow from missing records."""


def planned_results(plan: ScopeCopyPlan) -> tuple[StreamResult, ...]:
    """List the results before any stream is copied: in the plan's order, then settled streams."""
    planned = tuple(
        StreamResult(
            stream=stream.name,
            target=stream.target_name,
            state=StreamState.PLANNED,
            bytes=stream.bytes,
            events=stream.events,
        )
        for stream in plan.items
    )
    return (*planned, *plan.scope.settled)


@dataclass(frozen=True, slots=True)
class ScopeState:
    """State of a scope's copy, as its log tells it.

    Attributes:
        plan: the plan of the latest run.
        results: results of the run's streams that have ended, by place in the plan.
        stopped: whether the run begins no other stream.
        wish: how a copy that follows its streams is to end; the last wish that was recorded.
        wishes: how many wishes were recorded.
        consent: the proof that the last wish is the owner's, if it is to seal the sources.
        first: the plan as it was recorded, without the streams that have joined since; None if none
            has.
        live: whether the streams of that plan are followed, have ended, or are begun anew now and
            then since they could not be copied for the time being.
    """

    plan: ScopeCopyPlan
    results: Mapping[int, StreamResult] = field(default_factory=dict)
    stopped: bool = False
    wish: Wish = field(default_factory=Wish)
    wishes: int = 0
    consent: str = ""
    first: ScopeCopyPlan | None = None
    live: bool = False

    @property
    def begun(self) -> ScopeCopyPlan:
        """The plan of the run without the streams that have joined since."""
        return self.first or self.plan

    @property
    def joined(self) -> int:
        """How many streams have joined since the run was planned."""
        begun = self.begun
        return self.known - len(begun.items) - len(begun.scope.settled)

    @property
    def run(self) -> int:
        """The number of the run."""
        return run_of(self.plan)

    @property
    def known(self) -> int:
        """How many streams have a plan, or a result without one."""
        return len(self.plan.items) + len(self.plan.scope.settled)

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to do in this run.

        A scope without streams is followed until it has some, and these have ended.
        """
        waits = self.plan.scope.following is not None and not self.plan.items
        return self.stopped or (len(self.results) == len(self.plan.items) and not waits)

    @property
    def claims(self) -> tuple[SealClaim, ...]:
        """The consent of the last wish, if that is to seal the sources."""
        if self.wish.cutover != "SealAndDrain":
            return ()
        return (SealClaim(self.plan.scope.scope_id, self.wishes - 1, self.consent),)

    def may_seal(self, key: str) -> bool:
        """Tell whether the last wish is to seal the sources, and is the owner's; see `consent`."""
        return any(claim.is_owners(key) for claim in self.claims)

    @property
    def streams(self) -> tuple[StreamResult, ...]:
        """The result of every stream: in the plan's order, then settled streams."""
        return tuple(
            self._known(place, result) if place < len(self.plan.items) else result
            for place, result in enumerate(planned_results(self.plan))
        )

    @property
    def counts(self) -> Counts:
        """The streams by state. Read every few seconds, so planned streams are not looked at."""
        ended = counts_of((*self.results.values(), *self.plan.scope.settled))
        left = len(self.plan.items) - len(self.results)
        return Counts(
            total=ended.total + left,
            copied=ended.copied,
            failed=ended.failed,
            stopped=ended.stopped + (left if self.stopped else 0),
        )

    def _known(self, place: int, planned: StreamResult) -> StreamResult:
        found = self.results.get(place)
        if found is None and self.stopped:
            return planned.model_copy(update={"state": StreamState.STOPPED})
        return found or planned


def run_of(plan: ScopeCopyPlan) -> int:
    """Return the number of a scope's run."""
    return plan.scope.run


def follows(plan: ScopeCopyPlan, state: ScopeState | None) -> bool:
    """Tell whether a plan may be written down: the first one, or that of a later run."""
    run = run_of(plan)
    return state is None or (state.is_over and run > state.run)


def plan_record(plan: ScopeCopyPlan) -> dict[str, Any]:
    """Return the record of a run's plan."""
    return {"record": "plan", "plan": base64.b64encode(compressed(plan)).decode()}


def results_record(run: int, results: Mapping[int, StreamResult]) -> dict[str, Any]:
    """Return the record of results, by place in the run's plan; a stream's first result counts."""
    return {
        "record": "results",
        "run": run,
        "results": [
            [place, result.model_dump(mode="json", exclude_defaults=True)]
            for place, result in sorted(results.items())
        ],
    }


def stopped_record(run: int) -> dict[str, Any]:
    """Return the record that a run begins no other stream."""
    return {"record": "stopped", "run": run}


def join_record(plan: ScopeCopyPlan, at: int) -> dict[str, Any]:
    """Return the record that streams join a copy that follows its scope.

    Args:
        plan: the plan of these streams alone. What it has settled is settled in the whole.
        at: how many streams have a plan or a result before them, `known`. The first record for a
            number holds.
    """
    packed = base64.b64encode(compressed(plan)).decode()
    return {"record": "join", "run": run_of(plan), "at": at, "plan": packed}


def live_record(run: int) -> dict[str, Any]:
    """Return the record that the streams of a run's plan are followed; see `ScopeState.live`."""
    return {"record": "live", "run": run}


def wish_record(run: int, number: int, wish: Wish, proof: str = "") -> dict[str, Any]:
    """Return the record of how a copy that follows its scope is to end.

    Args:
        run: the run's number.
        number: how many wishes are recorded so far; the first record of a number holds.
        wish: the wish.
        proof: the consent of the copy's owner, if sources are to be sealed.
    """
    given = {"consent": proof} if proof else {}
    return {"record": "wish", "run": run, "number": number, "wish": wish_body(wish), **given}


def fold(
    records: Iterable[Mapping[str, Any]],
    state: ScopeState | None = None,
    *,
    read: Callable[[bytes], ScopeCopyPlan] = expanded,
) -> ScopeState | None:
    """Fold records of the log into the state of the copy.

    Args:
        records: the next records of the log.
        state: the state from the records before; None at the beginning.
        read: expands the bytes of a plan, or raises ValueError.

    Returns:
        The new state; None if there is no record yet.

    Raises:
        JournalDamaged: the first record is no plan, or a record is unknown or damaged.
    """
    try:
        return _fold(records, state, read)
    except (ValueError, TypeError, KeyError, IndexError) as error:
        raise JournalDamaged(f"the log of a scope has a damaged record: {error}") from error


def _fold(
    records: Iterable[Mapping[str, Any]],
    state: ScopeState | None,
    read: Callable[[bytes], ScopeCopyPlan],
) -> ScopeState | None:
    results: dict[int, StreamResult] = {} if state is None else dict(state.results)
    for record in records:
        match record:
            case {"record": "plan", "plan": str(text)}:
                plan = read(base64.b64decode(text, validate=True))
                if follows(plan, state):
                    results = {}
                    state = ScopeState(plan, results)
            case {"record": "results", "run": int(run), "results": list(pairs)} if state:
                ended = {place: StreamResult.model_validate(body) for place, body in pairs}
                if run == state.run:
                    _check(state, ended)
                    # In place: a copy for each record would take seconds where there are thousands.
                    results |= {at: one for at, one in ended.items() if at not in results}
                    state = replace(state, results=results)
            case {"record": "join" | "wish" | "live", "run": int(run)} if state:
                if run == state.run and not state.is_over:
                    state = _followed(state, record, read)
            case {"record": "stopped", "run": int(run)} if state:
                if run == state.run:
                    state = replace(state, stopped=True)
            case _:
                raise JournalDamaged(
                    f"the log of a scope has a record that this version does not know:"
                    f" {str(record)[:SHOWN]}",
                    remedy="Run it with the version of Sluice that began it, or abort the copy.",
                )
    return state


def _followed(
    state: ScopeState, record: Mapping[str, Any], read: Callable[[bytes], ScopeCopyPlan]
) -> ScopeState:
    """Return the state behind a record of a copy that follows its streams, and is not over."""
    match record:
        case {"record": "join", "at": int(at), "plan": str(text)}:
            joining = read(base64.b64decode(text, validate=True))
            if at != state.known:
                return state
            return replace(state, plan=_joined(state.plan, joining), first=state.begun)
        case {"record": "live"}:
            return replace(state, live=True)
        case {"record": "wish", "number": int(number), "wish": body}:
            wish, proof = Wish.model_validate(body), str(record.get("consent", ""))
            if number != state.wishes:
                return state
            return replace(state, wish=wish, wishes=number + 1, consent=proof)
        case _:
            raise ValueError(f"{record['record']} is no whole record")


def _joined(plan: ScopeCopyPlan, joining: ScopeCopyPlan) -> ScopeCopyPlan:
    """Return a plan with the streams that join it, each of which has a place of its own."""
    if plan.scope.following is None or plan.runs or joining.runs:
        raise ValueError("streams join a copy that follows none")
    settled = (*plan.scope.settled, *joining.scope.settled)
    names = [one.name for one in (*plan.streams, *joining.streams)]
    names += [one.stream for one in settled]
    if len(set(names)) < len(names):
        raise ValueError("a stream joins a copy that has it")
    scope = plan.scope.model_copy(update={"settled": settled})
    streams = (*plan.streams, *joining.streams)
    return plan.model_copy(update={"streams": streams, "scope": scope})


def _check(state: ScopeState, ended: Mapping[Any, StreamResult]) -> None:
    for place, result in ended.items():
        if type(place) is not int or not 0 <= place < len(state.plan.items):
            raise ValueError(f"{place!r} is no place in the plan")
        if result.state not in FINAL:
            raise ValueError(f"a stream that is {result.state} has not ended")
