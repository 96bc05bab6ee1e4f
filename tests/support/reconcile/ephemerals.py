"""An EphemeralStream and its world, for tests of its decisions. Fields without a value are well."""

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
    """Return a spec with some fields set, as YAML has them. Fields that are None are removed."""
    fields = resources.EPHEMERAL["spec"] | changes
    given = {name: value for name, value in fields.items() if value is not None}
    return EphemeralStreamSpec.model_validate(given)


def ephemeral(*, status: EphemeralStreamStatus | None = None, **changes: Any) -> EphemeralSeen:
    """Return a new resource with some fields of the spec and of EphemeralSeen set."""
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
    """Return a resource for the streams that its application makes under a prefix."""
    return ephemeral(**{"stream": None, "streamPrefix": "app-"} | changes)


def world(*owners: OwnerSeen, **changes: Any) -> EphemeralWorld:
    """Return a world in which the store is ready and has nothing yet."""
    return replace(EphemeralWorld(now=NOW, store=STORE, owners=owners, holding=ABSENT), **changes)


def trouble(error: SluiceError) -> Trouble:
    """Return an error in the form of a look."""
    return Trouble.of(error)


def after(seen: EphemeralSeen, decision: EphemeralDecision, **changes: Any) -> EphemeralSeen:
    """Return the resource after a decision was carried out."""
    finalizer = seen.finalizer
    for action in decision.actions:
        finalizer = isinstance(action, Protect) or (finalizer and not isinstance(action, Unprotect))
    status = EphemeralStreamStatus.read(decision.status.dump())
    assert status == decision.status, "a status that was written reads back as it was"
    return replace(seen, **{"status": status, "finalizer": finalizer} | changes)


def claimed(seen: EphemeralSeen, *owners: OwnerSeen, **changes: Any) -> EphemeralSeen:
    """Return the resource with its streams made and its owners bound."""
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
    """Return the resource after the decision to release its streams, with `owners` at that time."""
    decision = reconcile_ephemeral(seen, world(*owners, holding=OURS, **changes))
    assert decision.status.release is not None
    return after(seen, decision)


def ready(status: EphemeralStreamStatus) -> tuple[str, str]:
    """Return status and reason of the condition Ready."""
    found = status.condition(ConditionType.READY)
    assert found is not None
    return found.status, found.reason


def said(decision: EphemeralDecision) -> tuple[str, str]:
    """Return status and reason of the condition Ready in a decision."""
    return ready(decision.status)


def message(decision: EphemeralDecision) -> str:
    """Return the message of the condition Ready."""
    found = decision.status.condition(ConditionType.READY)
    assert found is not None
    return found.message


def stands(decision: EphemeralDecision, kind: str) -> bool:
    """Tell whether a decision has a condition of this type."""
    return decision.status.condition(kind) is not None


def states(decision: EphemeralDecision) -> list[str]:
    """Return the states of the owners."""
    return [owner.state for owner in decision.status.owners]
