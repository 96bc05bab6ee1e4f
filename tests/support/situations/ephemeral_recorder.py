"""EphemeralStreams whose statuses the operator's own pure functions write: see `recorder`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sluice.api.kinds.ephemeralstream import EphemeralStream
from sluice.api.status.ephemeral_status import EphemeralStreamStatus
from sluice.core.claims.claim import Holding, Ownership
from sluice.core.reconcile.ephemeral.decide import (
    after_ephemeral_failure,
    asks_store,
    reconcile_ephemeral,
)
from sluice.core.reconcile.ephemeral.world import (
    EphemeralWorld,
    OwnerSeen,
    Protect,
    Refer,
    Unprotect,
)
from sluice.core.values.trouble import Trouble
from sluice.kube.api.objects import STREAMS_FINALIZER, ephemeral_seen, parse
from support.cases import resources
from support.situations.recorder import READY, Recorder

if TYPE_CHECKING:
    from sluice.core.reconcile.ephemeral.world import EphemeralDecision, EphemeralSeen
    from sluice.errors import SluiceError

APP = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "app"}
LOAD = {"apiVersion": "batch/v1", "kind": "Job", "name": "load"}
CREATED = 1_777_896_000_000
NOTHING = Holding(scope=True)
HELPER = Holding(scope=True, ownership=Ownership.OURS, streams=("helper",), created=CREATED)
MARKED = Holding(scope=True, marked=True, ownership=Ownership.OURS)
MADE = replace(MARKED, streams=("app-marks", "app-state"), left_alone=1)


class EphemeralRecorder(Recorder):
    """A recorder of one EphemeralStream.

    Args:
        name: the resource's name.
        spec: fields of its spec besides the store and the scope. Without a prefix they describe the
            stream `helper`.
    """

    def __init__(self, name: str, **spec: Any) -> None:
        super().__init__(resources.EPHEMERAL, name)
        if "streamPrefix" in spec:
            del self.body["spec"]["stream"]
        self.body["spec"] |= spec
        self.owners: list[OwnerSeen] = [
            OwnerSeen(uid=f"uid-of-{owner['name']}") for owner in spec.get("owners", ())
        ]

    @property
    def whole(self) -> Holding:
        """The store's answer once the streams exist."""
        return HELPER if "stream" in self.body["spec"] else MADE

    def look(self, *, killed: bool = False, **world: Any) -> EphemeralDecision:
        """Let the operator look at the resource, write its status, and act on its decision.

        Args:
            killed: whether the operator is killed before it acts.
            world: the operator's surroundings, as fields of EphemeralWorld. The store is ready by
                default. Its answer, `holding`, is allowed only if the operator asks for it.
        """
        seen, around = self._seen(), self._world(**world)
        asked = asks_store(seen, replace(around, holding=None, trouble=None))
        assert asked or "holding" not in world, "the store was not asked"
        decision = reconcile_ephemeral(seen, around)
        self._write(replace(decision, actions=()) if killed else decision)
        return decision

    def fail(self, error: SluiceError, **world: Any) -> None:
        """Let an action of the last look fail."""
        around = self._world(**world)
        self._write(after_ephemeral_failure(self._seen(), around, Trouble.of(error)))

    def claim(self) -> None:
        """Let the owners appear and be referred to, and let the streams be made."""
        decision = self.look()
        if any(isinstance(action, Refer) for action in decision.actions):
            decision = self.look(holding=NOTHING)
        assert Protect() in decision.actions
        self.later(2)
        self.look(holding=self.whole)
        assert self.reason == "Claimed"

    def lose_owners(self) -> None:
        """Delete all owners."""
        self.later(20)
        self.owners = [OwnerSeen() for _ in self.owners]

    def finish_owners(self) -> None:
        """Finish the work of all owners."""
        self.later(20)
        self.owners = [replace(owner, finished=True) for owner in self.owners]

    def release(self) -> None:
        """Let the operator decide to release the streams, and let the streams be released."""
        self.look(holding=self.whole)
        assert "release" in self.body["status"]
        if self.body["spec"].get("onRelease") != "Retain":
            self.look(holding=self.whole)
        self.look(holding=NOTHING)
        assert self.reason == "Released"

    @property
    def reason(self) -> str:
        """The reason of the condition Ready."""
        conditions = self.body["status"].get("conditions", [])
        return next((str(one["reason"]) for one in conditions if one["type"] == "Ready"), "")

    def _seen(self) -> EphemeralSeen:
        return replace(
            ephemeral_seen(self.body, parse(self.body, EphemeralStream)), deleted=self.deleted
        )

    def _world(self, **world: Any) -> EphemeralWorld:
        usual: dict[str, Any] = {
            "now": self.now,
            "store": READY,
            "owners": () if self.deleted is not None else tuple(self.owners),
            "holding": NOTHING,
        }
        return EphemeralWorld(**usual | world)

    def _write(self, decision: EphemeralDecision) -> None:
        self.body["status"] = EphemeralStreamStatus.read(decision.status.dump()).dump()
        meta = self.body["metadata"]
        for action in decision.actions:
            match action:
                case Protect():
                    meta["finalizers"] = [STREAMS_FINALIZER]
                case Unprotect():
                    meta.pop("finalizers", None)
                case Refer(owners):
                    self._refer(owners)

    def _refer(self, owners: tuple[tuple[int, str], ...]) -> None:
        """Add references to owners, as the API server keeps them."""
        references = self.body["metadata"].setdefault("ownerReferences", [])
        for index, uid in owners:
            owner = self.body["spec"]["owners"][index]
            references.append({**owner, "uid": uid, "blockOwnerDeletion": False})
