"""Define restore drills: when a run of an archive is restored to see that it can be."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from sluice.api.fields.common import ApiModel, InStore, NewNameInStore, StoreRef
from sluice.api.fields.schedule import Schedule


class DrillTarget(InStore):
    """Where the scratch stream of a drill is made and deleted."""

    store_ref: StoreRef = Field(description="The StreamStore to restore to. Its kind is pravega.")
    scope: NewNameInStore = Field(description="The scope of the scratch stream. It must exist.")

    @property
    def title(self) -> str:
        """The scope, for messages."""
        return self.scope


class VerifySpec(ApiModel):
    """When restore drills begin, which run they restore, and where to."""

    schedule: Schedule = Field(
        description="When drills begin. A drill waits for a run that goes on, and pauses when a "
        "run is due."
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
        "scope when left out. The StreamStore's access must allow Create, Append and Delete there.",
    )
