"""Define restore drills: when a run of an archive is restored to see that it can be."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from sluice.api.fields.backends import Holds, either
from sluice.api.fields.common import ApiModel, InOwnStore, NewNameInStore, OwnStoreRef
from sluice.api.fields.schedule import Schedule


class DrillTarget(InOwnStore):
    """Where the scratch stream of a drill is made and deleted: never in another namespace."""

    store_ref: OwnStoreRef = Field(
        description=f"The StreamStore to restore to. Its kind is {either(Holds.LIVE)}."
    )
    scope: NewNameInStore = Field(description="The scope of the scratch stream. It must exist.")

    @classmethod
    def at(cls, store: str, scope: str) -> DrillTarget:
        """Return a place that was checked before, or that the API server checks."""
        ref = OwnStoreRef.model_construct(name=store)
        return cls.model_construct(store_ref=ref, scope=scope)

    @property
    def title(self) -> str:
        """The scope, for messages."""
        return self.scope


class VerifySpec(ApiModel):
    """When restore drills begin, which run they restore, and where to."""

    schedule: Schedule = Field(
        description="When drills begin. A drill waits for a run that goes on, and pauses when a "
        "run is due. A new value of the annotation sluice.dev/drillRequestedAt begins another one."
    )
    sample: Literal["Last", "Rotate"] = Field(
        default="Last",
        description="Which run a drill restores, with all the bytes that it holds. Last: the last "
        "recorded run. Rotate: each time the next older one of status.archive.lastRuns, and after "
        "the oldest the last one again.",
    )
    target: DrillTarget | None = Field(
        default=None,
        description="Where the scratch stream is made and deleted; the source's StreamStore and "
        "scope when left out. It is required if the source's storeRef has a namespace. The "
        "StreamStore's access must allow Create, Append and Delete there.",
    )
