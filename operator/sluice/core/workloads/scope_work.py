"""Tell the plan of a scope's copy from plans that other clients may have put in its place."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sluice.core.copy.plan import StreamPlan
from sluice.core.values.archive_layout import below, stream_at

if TYPE_CHECKING:
    from sluice.core.archive.plan import ArchivePlan
    from sluice.core.scope.request import ScopeRequest
    from sluice.core.workloads.plan import ScopeCopyPlan


class ScopeWork(NamedTuple):
    """Identity of a scope's copy, against which a recorded plan is compared.

    Any client that may write to the target's scope or folder could write a plan there. A driver
    with the login of the store would carry it out.

    Attributes:
        scope_id: the identity of the whole copy.
        target: the target's scope, or the path of the folder of archives.
        source: the source's scope, or the path of its folder; None if the caller does not know it.
        move: whether the source is deleted; None if the caller does not know it.
        following: the request by which streams join, if the copy follows its streams; None if the
            caller does not know it.
    """

    scope_id: str
    target: str
    source: str | None = None
    move: bool | None = None
    following: ScopeRequest | None = None

    def has(self, plan: ScopeCopyPlan) -> bool:
        """Tell whether a plan is of this copy, and stays in its source and its target."""
        scope = plan.scope
        source = scope.source if self.source is None else self.source
        if (scope.scope_id, scope.target, scope.source) != (self.scope_id, self.target, source):
            return False
        if scope.move and self.move is False:
            return False
        if scope.following is not None and not self._follows(scope.following, plan):
            return False
        return all(_stays(one, plan) for one in plan.items)

    def _follows(self, request: ScopeRequest, plan: ScopeCopyPlan) -> bool:
        """Tell whether the request by which streams join is that of the copy.

        Otherwise streams could join that the copy does not select, and that perhaps only its login
        can read.
        """
        scope, known = plan.scope, self.following
        same = (request.scope_id, request.source, request.target) == (
            scope.scope_id,
            scope.source,
            scope.target,
        )
        plain = request.restore is None and request.archive is None and not request.move
        chosen = known is None or _selection(request) == _selection(known)
        return same and plain and chosen and not scope.move and request.follow


def _selection(request: ScopeRequest) -> tuple[object, ...]:
    """Return what decides which streams join, and where to."""
    chosen = request.include, request.exclude, request.ephemeral
    return *chosen, request.rename, request.on_exists


def _stays(item: StreamPlan | ArchivePlan, plan: ScopeCopyPlan) -> bool:
    """Tell whether the plan of a stream reads and writes where the plan of its scope does."""
    scope = plan.scope
    if not isinstance(item, StreamPlan):
        read = item.store == 0 and item.source.scope == scope.source
        return read and _is_in(item.path, scope.target)
    read = all(one.store == 0 for one in item.sources) and all(  # a scope has one store
        _is_in(one.archive.path, scope.source)
        if one.archive is not None
        else one.stream.scope == scope.source
        for one in item.sources
    )
    return read and item.target.scope == scope.target and (scope.move or not item.move)


def _is_in(path: str, folder: str) -> bool:
    """Tell whether the archive of a stream lies in a folder."""
    return path == below(folder, stream_at(path))
