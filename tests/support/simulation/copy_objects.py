"""The objects of one copy at an API server in memory, and the actions of users on them."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Final

from sluice.core.reconcile.copies.object_names import plan_name, positions_name
from sluice.core.values.model import StoreAddress
from sluice.kube.api.kinds import CONFIG_MAP, JOB, STREAM_COPY, STREAM_STORE
from sluice.kube.api.names import child_labels
from sluice.kube.api.objects import (
    FORCE_ORPHAN,
    REQUESTED_AT,
    STAGING_FINALIZER,
    STATUSES,
    has_finalizer,
)
from sluice.kube.jobs.hooks import is_hook
from sluice.kube.jobs.manifests import positions_of
from sluice.kube.jobs.pods import PLAN_FILE
from sluice.kube.loop.settings import OperatorSettings, Profile
from support.cases import resources
from support.kube.api_server import ApiServer
from support.reconcile import copies
from support.simulation.copy_store import FROM, TO, planned

if TYPE_CHECKING:
    from sluice.api.status.common import CopyingStatus
    from sluice.core.values.positions import PositionMap
    from sluice.kube.api.kinds import Kind, Object

_FIRST: Final = 2
"""Number of sorts of forged plans."""


class CopyObjects:
    """A copy, its StreamStores, its Jobs and its ConfigMaps at an API server.

    Attributes:
        server: the API server.
        runtime, profile_there: the operator's settings, by its administrator.
        space: the namespace of the StreamStores and the drivers.
    """

    kind: Kind = STREAM_COPY
    resource: Object = resources.changed(resources.COPY, "spec.source.storeRef.name", "from")
    sources: tuple[Object, ...] = (
        {"name": "from", "spec": {"pravega": {"controllerURI": FROM.uri}}},
    )
    space: ClassVar[str] = "default"
    target: ClassVar[Object] = {"name": "local", "spec": {"pravega": {"controllerURI": TO.uri}}}

    def __init__(self) -> None:
        self.server = ApiServer()
        self.runtime, self.profile_there = 0, True
        self._status: tuple[str, CopyingStatus] | None = None

    # -- the objects

    @property
    def name(self) -> str:
        """The copy's name."""
        name: str = self.resource["metadata"]["name"]
        return name

    @property
    def copy(self) -> Object | None:
        """The copy as it is; None if it is gone."""
        return self.server.body(self.kind, self.name)

    @property
    def finalizer(self) -> bool:
        """Tell whether our finalizer holds the copy."""
        return self.copy is not None and has_finalizer(self.copy, STAGING_FINALIZER)

    @property
    def deleted(self) -> bool:
        """Tell whether the copy was deleted."""
        return self.copy is None or "deletionTimestamp" in self.copy["metadata"]

    @property
    def requested_at(self) -> str | None:
        """The run that was requested last."""
        assert self.copy is not None
        asked: str | None = self.copy["metadata"]["annotations"].get(REQUESTED_AT)
        return asked

    @property
    def generation(self) -> int:
        """The copy's generation."""
        assert self.copy is not None
        generation: int = self.copy["metadata"]["generation"]
        return generation

    @property
    def status(self) -> Any:
        """The copy's status; the last one, once the copy is gone."""
        if self.copy is not None:
            version = self.copy["metadata"]["resourceVersion"]
            if self._status is None or self._status[0] != version:
                written = self.copy.get("status")
                found = STATUSES[self.kind].read(written)
                assert not written or found.dump() == written, "a status reads back as written"
                self._status = (version, found)
        assert self._status is not None
        return self._status[1]

    @property
    def jobs(self) -> list[Object]:
        """The attempts' Jobs that have not ended, and none that users have forged without a pod."""
        found = (job for job in self.server.all(JOB) if not job["spec"].get("suspend"))
        return [job for job in found if not has_ended(job) and not is_hook(job)]

    @property
    def positions(self) -> PositionMap | None:
        """The published map of positions."""
        return positions_of(self.server.body(CONFIG_MAP, positions_name(self.name, copies.UID)))

    @property
    def settings(self) -> OperatorSettings:
        """The operator's settings as its administrator has them now."""
        return _settings(self.runtime, there=self.profile_there)

    # -- actions of users

    def apply(self, spec: Object) -> None:
        """Apply the copy."""
        meta = {
            "name": self.name,
            "uid": copies.UID,
            "generation": 1,
            "creationTimestamp": copies.NOW.isoformat(),
            "annotations": {},
        }
        body = self.resource | {"metadata": meta, "spec": self.resource["spec"] | spec}
        self.server.put(self.kind, body)

    def change(self, **fields: Any) -> None:
        """Change the spec. Fields that are None are removed."""
        if self.copy is None or self.deleted:
            return
        spec = {name: it for name, it in (self.copy["spec"] | fields).items() if it is not None}
        meta = {"generation": self.generation + 1}
        self.server.edit(self.kind, self.name, spec=spec, metadata=meta)

    def annotate(self, name: str, value: str) -> None:
        """Write an annotation of the copy."""
        if self.copy is not None:
            notes = self.copy["metadata"]["annotations"] | {name: value}
            self.server.edit(self.kind, self.name, metadata={"annotations": notes})

    def request(self, number: int) -> None:
        """Request another run."""
        self.annotate(REQUESTED_AT, str(number))

    def force_orphan(self, *, on: bool) -> None:
        """Set or withdraw the annotation that forces the copy to go."""
        self.annotate(FORCE_ORPHAN, "true" if on else "false")

    def delete(self) -> None:
        """Delete the copy."""
        self.server.remove(self.kind, self.name)

    def put_store(self, which: str) -> None:
        """Apply a StreamStore: `source` or `target`."""
        known = {"source": self.sources[0], "target": self.target}[which]
        if self.server.body(STREAM_STORE, known["name"], self.space) is None:
            meta = {"name": known["name"], "namespace": self.space, "generation": 1}
            body = resources.STORE | {"metadata": meta, "spec": known["spec"]}
            self.server.put(STREAM_STORE, body)

    def take_store(self, which: str, *, wholly: bool) -> None:
        """Delete a StreamStore. It goes if nothing holds it, or wholly."""
        name = {"source": self.sources[0], "target": self.target}[which]["name"]
        self.server.remove(STREAM_STORE, name, self.space)
        if wholly:
            self.server.destroy(STREAM_STORE, name, self.space)

    def is_leaving(self, which: str) -> bool:
        """Tell whether a deleted StreamStore still exists."""
        name = {"source": self.sources[0], "target": self.target}[which]["name"]
        found = self.server.body(STREAM_STORE, name, self.space)
        return found is not None and "deletionTimestamp" in found["metadata"]

    def lose_status(self) -> None:
        """Restore the copy from a backup, without its status."""
        if self.copy is not None:
            self.server.edit(self.kind, self.name, status={})

    def drop_plan(self) -> None:
        """Delete the plan's ConfigMap."""
        self.server.remove(CONFIG_MAP, plan_name(self.name, copies.UID))

    def forge_plan(self, sort: int) -> None:
        """Put a forged ConfigMap in the plan's place."""
        name = plan_name(self.name, copies.UID)
        found = self.server.body(CONFIG_MAP, name)
        if found is None:
            return
        meta = {"name": name, "labels": child_labels(copies.UID, "plan")}
        if sort % _FIRST:
            forged = {"data": {PLAN_FILE: "no plan"}, "metadata": meta}
        else:  # a plan, in which only the content is wrong
            plan = planned(7).model_copy(update={"target": StoreAddress(uri="tcp://evil:1")})
            owners = found["metadata"].get("ownerReferences", [])
            forged = {
                "data": {PLAN_FILE: plan.model_dump_json()},
                "metadata": meta | {"ownerReferences": owners},
            }
        self.server.remove(CONFIG_MAP, name)
        self.server.put(CONFIG_MAP, {"immutable": True, **forged})

    def job_names(self, *, ended: bool) -> list[str]:
        """Return the names of the Jobs that have ended, or of those that have not."""
        found = [job for job in self.server.all(JOB) if has_ended(job) == ended]
        return sorted(job["metadata"]["name"] for job in found)

    def remove_job(self, name: str) -> None:
        """Delete a Job. Its pods are told to stop."""
        self.server.remove(JOB, name, self.space)


@lru_cache
def _settings(runtime: int, *, there: bool) -> OperatorSettings:
    profiles = {"default": Profile()} if there else {}
    return OperatorSettings(image=f"i{runtime}", profiles=profiles)


def has_ended(job: Object) -> bool:
    """Tell whether a Job has ended."""
    return bool(job.get("status", {}).get("conditions"))
