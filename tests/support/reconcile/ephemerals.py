"""An EphemeralStream and the world around it, for tests of its decisions: all else is well."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sluice.api.kinds.ephemeralstream import EphemeralStreamSpec
from sluice.api.status.common import ConditionType
from sluice.api.status.ephemeral_status import EphemeralStreamStatus
from sluice.core.claims.claim import Holding, Ownership
from sluice.core.reconcile.ephemeral.decide import reconcile_ephemeral
from sluice.core.reconcile.ephemeral.world import (
    EphemeralSeen,
    EphemeralWorld,
    OwnerSeen,
    Protect,
    Unprotect,
)
from sluice.core.values.trouble import Trouble
from support.cases import resources
from support.reconcile import copies
from support.reconcile.copies import NOW

if TYPE_CHECKING:
    from sluice.core.reconcile.ephemeral.world import EphemeralDecision
    from sluice.errors import SluiceError

UID = "5b6a7c1e-0d1f-4c5e-9d55-2f3a9a1f2b11"
OWNER = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "app"}
SECOND = {"apiVersion": "batch/v1", "kind": "Job", "name": "load"}
STORE = copies.STORE
AWAY = replace(STORE, ready=False, why="no answer")
CREATED = 1_760_000_000_000
OURS = Holding(scope=True, ownership=Ownership.OURS, streams=("helper",), created=CREATED)
ABSENT = Holding(scope=True)
NO_SCOPE = Holding(scope=False)
FOREIGN = Holding(scope=True, ownership=Ownership.UNOWNED, created=CREATED + 5)
TAKEN = Holding(
    scope=True,
    ownership=Ownership.OTHERS,
    created=CREATED,
    holder="EphemeralStream team/older",
    holder_uid="uid-of-older",
)
MARKED = Holding(scope=True, marked=True, ownership=Ownership.OURS, streams=("app-a", "app-b"))
PRESENT = OwnerSeen(uid="owner-1")
ANOTHER = OwnerSeen(uid="owner-2")
ABSENT_OWNER = OwnerSeen()


def spec(**changes: Any) -> EphemeralStreamSpec:
    """A spec with some fields set, as YAML has them; None takes one away."""
    fields = resources.EPHEMERAL["spec"] | changes
    given = {name: value for name, value in fields.items() if value is not None}
    return EphemeralStreamSpec.model_validate(given)


def ephemeral(*, status: EphemeralStreamStatus | None = None, **changes: Any) -> EphemeralSeen:
    """A resource that was just made; fields of the spec and of EphemeralSeen may be set."""
    own = {name: value for name, value in changes.items() if name in EphemeralSeen.__slots__}
    fields = {name: value for name, value in changes.items() if name not in own}
    bare = EphemeralSeen(
        name="helper",
        namespace="team",
        uid=UID,
        generation=1,
        created=NOW,
        spec=spec(**fields),
        status=status or EphemeralStreamStatus(),
    )
    return replace(bare, **own)


def prefixed(**changes: Any) -> EphemeralSeen:
    """A resource for what its application makes under a prefix."""
    return ephemeral(**{"stream": None, "streamPrefix": "app-"} | changes)


def world(*owners: OwnerSeen, **changes: Any) -> EphemeralWorld:
    """A world in which the store is ready and has nothing yet."""
    return replace(EphemeralWorld(now=NOW, store=STORE, owners=owners, holding=ABSENT), **changes)


def trouble(error: SluiceError) -> Trouble:
    """What a look says of an error."""
    return Trouble.of(error)


def after(seen: EphemeralSeen, decision: EphemeralDecision, **changes: Any) -> EphemeralSeen:
    """The resource as it is found once a decision was carried out."""
    finalizer = seen.finalizer
    for action in decision.actions:
        finalizer = isinstance(action, Protect) or (finalizer and not isinstance(action, Unprotect))
    status = EphemeralStreamStatus.read(decision.status.dump())
    assert status == decision.status, "a status that was written reads back as it was"
    return replace(seen, **{"status": status, "finalizer": finalizer} | changes)


def claimed(seen: EphemeralSeen, *owners: OwnerSeen, **changes: Any) -> EphemeralSeen:
    """The resource when its streams are there, and its owners are bound."""
    if seen.spec.tracking == "OwnerReference":
        uids = frozenset(owner.uid for owner in owners if owner.uid is not None)
        seen = replace(seen, references=seen.references | uids)
    holding = OURS if seen.spec.stream is not None else MARKED
    for found in (replace(holding, scope=True, ownership=Ownership.ABSENT, streams=()), holding):
        seen = after(seen, reconcile_ephemeral(seen, world(*owners, holding=found)))
    assert seen.finalizer
    assert ready(seen.status) == ("True", "Claimed")
    return replace(seen, **changes)


def released(seen: EphemeralSeen, *owners: OwnerSeen, **changes: Any) -> EphemeralSeen:
    """The resource when it was decided that its streams go; with `owners` as they are then."""
    decision = reconcile_ephemeral(seen, world(*owners, holding=OURS, **changes))
    assert decision.status.release is not None
    return after(seen, decision)


def ready(status: EphemeralStreamStatus) -> tuple[str, str]:
    """Status and reason of the condition Ready."""
    found = status.condition(ConditionType.READY)
    assert found is not None
    return found.status, found.reason


def said(decision: EphemeralDecision) -> tuple[str, str]:
    """Status and reason of the condition Ready in a decision."""
    return ready(decision.status)


def message(decision: EphemeralDecision) -> str:
    """What the condition Ready says."""
    found = decision.status.condition(ConditionType.READY)
    assert found is not None
    return found.message


def stands(decision: EphemeralDecision, kind: str) -> bool:
    """Whether a condition of this type stands."""
    return decision.status.condition(kind) is not None


def states(decision: EphemeralDecision) -> list[str]:
    """The states of the owners."""
    return [owner.state for owner in decision.status.owners]
