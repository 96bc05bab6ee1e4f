"""Define where a directory of a volume is."""

from __future__ import annotations

from pydantic import Field

from sluice.api.fields.common import Folder, ObjectName
from sluice.api.fields.stores.part import StoreEntry, StorePart


class VolumeSpec(StorePart):
    """A directory of a volume."""

    claim_name: ObjectName = Field(
        description="The PersistentVolumeClaim, in this namespace. Drivers and executors mount "
        "it, so it needs ReadWriteMany if they are on different nodes."
    )
    path: Folder | None = Field(
        default=None, description="The directory in the volume; its root when left out."
    )

    @property
    def entry(self) -> StoreEntry:
        """The way to the directory."""
        below = f"/{self.path}" if self.path else ""
        return StoreEntry(uri=f"volume://{self.claim_name}{below}")
