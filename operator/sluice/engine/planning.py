"""Taking bounds: from a request to a plan, by looking at the stores."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sluice.core import identity
from sluice.core.planner import plan_stream
from sluice.engine.bounds import take_bounds
from sluice.engine.ledger import Ledger
from sluice.errors import SourceNotFound, TargetExists, TargetScopeNotFound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.core.model import StreamName
    from sluice.core.plan import StreamPlan
    from sluice.core.planner import CopyRequest
    from sluice.stores.base import Store


class Resolved(NamedTuple):
    """A request, held against the stores.

    Attributes:
        plan: what is to be copied; None when the copy is complete and nothing is left to tidy.
        recorded: whether a driver has begun to carry out the plan.
        digest: the digest under which the copy is complete.
    """

    plan: StreamPlan | None
    recorded: bool = False
    digest: str | None = None


def resolve(request: CopyRequest, sources: Sequence[Store], target: Store) -> Resolved:
    """The plan of a copy: the recorded one if it was begun, or a new one. Nothing is changed.

    Raises:
        TargetExists, TargetScopeNotFound, SourceNotFound, SourceUnsupported, SourceReplaced: as
            `check_target` and `make_plan` do.
    """
    # The journal before the target: a copy says that it is whole before it deletes its journal.
    journal = Ledger(target, request.copy_id, request.target).load()
    digest = check_target(request.copy_id, request.target, target)
    unfinished = journal is not None and journal.target is not None
    if digest is not None and not unfinished:
        return Resolved(None, digest=digest)
    if journal is not None:
        return Resolved(journal.plan, recorded=True)
    return Resolved(make_plan(request, sources))


def check_target(copy_id: str, name: StreamName, target: Store) -> str | None:
    """Whether the target may be made: None if so, or the digest under which it is finished.

    Raises:
        TargetExists: the stream is there and this copy did not make it.
        TargetScopeNotFound: its scope is not there.
    """
    there = target.describe(name)
    if there is None:
        if not target.scope_exists(name.scope):
            raise TargetScopeNotFound(
                f"scope {name.scope!r} does not exist in the target store",
                field="spec.target.scope",
            )
        return None
    if not identity.is_ours(there.config.tags, copy_id):
        raise TargetExists(
            f"{name} exists and this copy did not make it", field="spec.target.stream"
        )
    return identity.completed(there.config.tags, copy_id)


def make_plan(request: CopyRequest, stores: Sequence[Store]) -> StreamPlan:
    """The plan for what the sources hold now. Nothing is changed.

    The target is configured as the first source is.

    Raises:
        SourceNotFound: there is no such stream.
        SourceUnsupported: it was scaled in a way that no stream can be.
        InvalidSpec: a range is none of the stream.
    """
    configs = []
    for source in request.sources:
        stream = stores[source.store].describe(source.stream)
        if stream is None:
            raise SourceNotFound(
                f"stream {source.stream} does not exist in the source store",
                field=f"{source.field}.stream",
            )
        configs.append(stream.config)
    return plan_stream(request, config=configs[0], seen=take_bounds(request, stores))
