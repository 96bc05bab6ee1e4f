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

_MOST: Final = 5
"""Changes that a message tells."""


def chosen(
    state: LedgerState,
    plan: QueryPlan,
    checkpoint: Checkpoint,
    begins: Begins,
    *,
    restart: bool,
) -> VersionRecord:
    """Return the version that runs. It is a new one if its number is not that of the ledger.

    Args:
        state: the content of the ledger.
        plan: the plan as it is asked for now.
        checkpoint: the checkpoint of the ledger's version.
        begins: see above. It is called for the first version only.
        restart: whether a changed query, or one without its checkpoint, begins as a new version.

    Raises:
        QueryChanged: the query was changed.
        CheckpointLost, CheckpointDiverged: the checkpoint does not belong to the ledger.
    """
    version = state.version
    if version is None:
        check_checkpoint(state, checkpoint)
        return VersionRecord(number=1, plan=plan, begins=tuple(map(dict, begins())))
    try:
        _check_same(version.plan, plan)
        check_checkpoint(state, checkpoint)
    except (QueryChanged, CheckpointLost, CheckpointDiverged):
        if not restart:
            raise
        return _next(state, version, plan, begins)
    return version


def _check_same(before: QueryPlan, after: QueryPlan) -> None:
    found = changes(before, after)
    if found:
        said = "; ".join(map(str, found[:_MOST]))
        more = f"; and {len(found) - _MOST} more" if len(found) > _MOST else ""
        raise QueryChanged(f"{said}{more}")


def _next(
    state: LedgerState, version: VersionRecord, plan: QueryPlan, begins: Begins
) -> VersionRecord:
    """Return the next version, which begins behind what the last one has read.

    A source that the last version did not have begins where its spec says.
    """
    read = {
        position["stream"]: position
        for position in (*version.begins, *(state.last.ends if state.last else ()))
    }
    streams = [str(source.stream) for source in plan.sources]
    if all(stream in read for stream in streams):
        places = [read[stream] for stream in streams]
    else:
        fresh = zip(streams, begins(), strict=True)
        places = [dict(read.get(stream, place)) for stream, place in fresh]
    return VersionRecord(number=version.number + 1, plan=plan, begins=tuple(places))
