"""Decide which version of a query runs: the one in the ledger, or a new one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sluice.core.query.changes import changes
from sluice.core.query.ledger import VersionRecord, check_checkpoint
from sluice.errors import CheckpointDiverged, CheckpointLost, QueryChanged

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sluice.core.query.ledger import Checkpoint, LedgerState
    from sluice.core.query.plan import QueryPlan

    Begins = Callable[[], Sequence[Mapping[str, Any]]]
    """Gives the position of each source where its spec says that the query begins."""

    Written = Callable[[VersionRecord], int]
    """Gives the number of the last batch of a version that has rows in some sink; -1 for none."""

_MOST: Final = 5
"""Changes that a message tells."""


def chosen(
    state: LedgerState,
    plan: QueryPlan,
    look: Callable[[], Checkpoint],
    begins: Begins,
    written: Written,
    *,
    restart: bool,
) -> VersionRecord:
    """Return the version that runs. It is a new one if its number is not that of the ledger.

    Args:
        state: the content of the ledger.
        plan: the plan as it is asked for now.
        look: looks at the checkpoint of the ledger's version; the first one without a ledger.
        begins: see above. It is called for the first version, and for new sources.
        written: see above. It is called if a new version takes the place of another one.
        restart: whether a changed query, or one without its checkpoint, begins as a new version.

    Raises:
        QueryChanged: the query was changed.
        CheckpointLost, CheckpointDiverged: the checkpoint does not belong to the ledger.
    """
    version = state.version
    if version is None:
        # A checkpoint without a ledger is that of an earlier query of this name. It is left alone.
        number = (look().version or 0) + 1
        return VersionRecord(number=number, plan=plan, begins=tuple(map(dict, begins())))
    latest = version.number
    try:
        _check_same(version.plan, plan)
        checkpoint = look()
        latest = max(latest, checkpoint.version or 0)
        check_checkpoint(state, checkpoint)
    except (QueryChanged, CheckpointLost, CheckpointDiverged):
        if not restart:
            raise
        check_whole(state, written(version))
        return _next(state, version, plan, begins, latest + 1)
    return version


def check_whole(state: LedgerState, written: int) -> None:
    """Check that no sink has rows of a batch that is not whole. A new version would repeat them.

    Raises:
        CheckpointDiverged: one has.
    """
    if written > state.whole:
        raise CheckpointDiverged(
            f"batch {written} was cut off: some of its rows are in the sinks, and a new version "
            "would write them again",
            remedy="Take the change back, and run the query until that batch is whole. Without its "
            "checkpoint, give the query another name and another sink.",
        )


def _check_same(before: QueryPlan, after: QueryPlan) -> None:
    found = changes(before, after)
    if found:
        said = "; ".join(map(str, found[:_MOST]))
        more = f"; and {len(found) - _MOST} more" if len(found) > _MOST else ""
        raise QueryChanged(f"{said}{more}")


def _next(
    state: LedgerState, version: VersionRecord, plan: QueryPlan, begins: Begins, number: int
) -> VersionRecord:
    """Return the next version, which begins behind what the last one has read.

    A source that the last version did not have begins where its spec says.
    """
    read = _positions(version.begins) | _positions(state.last.ends if state.last else ())
    streams = [str(source.stream) for source in plan.sources]
    if all(stream in read for stream in streams):
        places = [read[stream] for stream in streams]
    else:
        fresh = zip(streams, begins(), strict=True)
        places = [dict(read.get(stream, place)) for stream, place in fresh]
    return VersionRecord(number=number, plan=plan, begins=tuple(places))


def _positions(places: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return positions by their streams.

    Raises:
        CheckpointDiverged: a stream that the query reads twice has two.
    """
    found: dict[str, dict[str, Any]] = {}
    for place in places:
        stream = str(place.get("stream"))
        if found.setdefault(stream, place) != place:
            raise CheckpointDiverged(
                f"the query reads {stream} twice, and the two readers are at two positions",
                remedy="Give the query another name and another sink.",
            )
    return found
