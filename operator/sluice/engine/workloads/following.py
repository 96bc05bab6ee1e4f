"""The operator's calls about a copy that follows its source: its end, and its reader groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.core.values.groups import GroupName
from sluice.engine.access.source_runs import live
from sluice.engine.follow import wishes
from sluice.engine.journal.copy_journal import CopyJournal
from sluice.engine.positions import reader_groups
from sluice.engine.positions.position_map import position_map
from sluice.engine.scope.object_log import log_of
from sluice.engine.workloads.scope import ScopeWorkload
from sluice.engine.workloads.stream import StreamWorkload
from sluice.errors import (
    InvalidSpec,
    ProtocolError,
    ReaderGroupBusy,
    ReaderGroupNotFound,
    StreamNotFound,
)

if TYPE_CHECKING:
    from sluice.core.copy.planner import CopyRequest
    from sluice.core.values.wish import Wish
    from sluice.engine.access.source_runs import Place
    from sluice.engine.workloads.workload import Workload
    from sluice.stores.base import Store


def write_wish(workload: Workload, target: Place, wish: Wish, *, key: str) -> bool:
    """Write how a copy is to end; arguments and result as those of `wishes.write`.

    For a copy of a scope, this is a record in the scope's log.
    """
    if isinstance(workload, ScopeWorkload):
        log = log_of(target, workload.request.scope_id, workload.request)
        return log.load() is not None and log.wish(wish, key)
    request = _request(workload)
    journal = CopyJournal(live(target), request.copy_id, request.target, request)
    return wishes.write(wish, journal, key=key)


def group_state(
    workload: Workload, source: Place, target: Place, *, name: str, into: str
) -> tuple[bool, str]:
    """Tell whether a reader group of a complete copy is made, or why it cannot be made now.

    Args:
        workload: the copy.
        source: the source's store.
        target: the target's store.
        name: the group, in the source's scope.
        into: the group to make, in the target's scope.

    Returns:
        Whether it is made. If not, why it cannot be; empty if it can.
    """
    request, goal = _request(workload), live(target)
    new = GroupName(request.target.scope, into)
    made = goal.reader_group(new)
    if made is not None and request.target not in made.streams:
        return False, f"The target's store has another reader group {into!r}."
    if made is not None and _is_begun(new, goal):
        return True, ""
    try:
        _look(request, live(source), goal, name)
    except (ReaderGroupBusy, ReaderGroupNotFound, InvalidSpec, StreamNotFound) as error:
        return False, f"{error.message[0].upper()}{error.message[1:]}."
    return False, ""


def _is_begun(group: GroupName, store: Store) -> bool:
    """Tell whether a group that the store knows has its first record, without which none can read.

    The process that made the group may have been cut off before.
    """
    try:
        store.group_state(group)
    except ReaderGroupNotFound:
        return False
    except ProtocolError:  # its readers are of another version, and have begun
        return True
    return True


def make_group(workload: Workload, source: Place, target: Place, *, name: str, into: str) -> bool:
    """Make a reader group in the target where that of the source stands.

    Arguments as those of `group_state`. It may be repeated.

    Returns:
        False if it was made before.

    Raises:
        ReaderGroupExists: another group has its name.
        ReaderGroupBusy, ReaderGroupNotFound, InvalidSpec: as `reader_groups.look` does.
    """
    request, goal = _request(workload), live(target)
    move = _look(request, live(source), goal, name)
    return reader_groups.make(
        GroupName(request.target.scope, into),
        request.target,
        move.target,
        settings=move.settings,
        copy_id=request.copy_id,
        store=goal,
    )


def _look(request: CopyRequest, source: Store, target: Store, name: str) -> reader_groups.Move:
    (origin,) = request.sources
    mapped = position_map(request.copy_id, request.target, target, follow=True)
    return reader_groups.look(GroupName(origin.stream.scope, name), origin.stream, mapped, source)


def _request(workload: Workload) -> CopyRequest:
    if not isinstance(workload, StreamWorkload):
        raise TypeError(f"a {type(workload).__name__} follows no source")
    return workload.request
