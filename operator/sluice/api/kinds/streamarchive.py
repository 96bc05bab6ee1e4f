"""Define StreamArchive: one stream, archived again and again; each run adds the new bytes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, ValidationInfo, field_validator

from sluice.api.fields.archives import (
    DEFAULT_MAX_EVENTS,
    FORMATS,
    MAX_EVENTS_RULE,
    FormatName,
    InArchives,
    MaxEvents,
    guards_objects,
)
from sluice.api.fields.backends import Holds, either
from sluice.api.fields.common import (
    ApiModel,
    ArchivePath,
    Resource,
    StoreRef,
    StreamInStore,
)
from sluice.api.fields.drills import DrillTarget, VerifySpec
from sluice.api.fields.running import DEFAULT_BACKOFF_LIMIT, Runtime, RuntimeSpec
from sluice.api.fields.schedule import RunRetentionSpec, Schedule
from sluice.api.rules import Rule, frozen, immutable, rules
from sluice.api.scalars.quantities import Bytes

_ANOTHER = "make another StreamArchive, under another name"
_NO_PLACE = (
    "the source's storeRef has a namespace, and drills restore only to a StreamStore of the "
    "StreamArchive's own namespace: name one with verify.target"
)


class ArchivedStream(StreamInStore):
    """The stream to archive, from its oldest byte when the first run begins."""


class Destination(InArchives):
    """Where the archive is."""

    store_ref: StoreRef = Field(
        description=f"The StreamStore to archive to. Its kind is {either(Holds.ARCHIVES)}."
    )
    path: ArchivePath = Field(
        description="The archive's path in the store. Each stream needs its own."
    )

    @property
    def title(self) -> str:
        """The archive's path, for messages."""
        return self.path


class ArchiveLimits(ApiModel):
    """The limits of a run. They may be changed while it goes on."""

    bytes_per_second: Annotated[int, Bytes("1Ki", "1Ti")] | None = Field(
        default=None,
        description="Maximum bytes of the stream per second over all tasks; no limit when left "
        "out. 1Ki to 1Ti.",
    )


class StreamArchiveSpec(ApiModel):
    """The source, the archive, and when to archive."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            MAX_EVENTS_RULE,
            Rule(
                "!has(self.verify) || has(self.verify.target)"
                " || !has(self.source.storeRef.__namespace__)",
                _NO_PLACE,
                path=".verify",
            ),
        )
    )

    source: ArchivedStream = Field(
        description="The stream to archive. Cannot be changed.",
        json_schema_extra=immutable("the source", _ANOTHER),
    )
    destination: Destination = Field(
        description="Where the archive is. Cannot be changed.",
        json_schema_extra=immutable("the destination", _ANOTHER),
    )
    format: FormatName = Field(
        default="Segments",
        description=f"{FORMATS} Cannot be changed.",
        json_schema_extra=frozen() | immutable("the format", _ANOTHER),
    )
    max_events: MaxEvents = None
    schedule: Schedule | None = Field(
        default=None,
        description="When runs begin. When left out there is one run, and another for each new "
        "value of the annotation sluice.dev/requestedAt.",
    )
    retention: RunRetentionSpec | None = Field(
        default=None,
        description="Which runs are kept when a new run is recorded; all when left out. The newest "
        "verified run is always kept, and so is a run that is being restored.",
    )
    verify: VerifySpec | None = Field(
        default=None,
        description="Restore drills: a run is restored to a scratch stream and compared, and the "
        "scratch stream is deleted. No drills when left out.",
    )
    on_delete: Literal["Retain", "Delete"] = Field(
        default="Retain",
        description="What happens to the archive when this resource is deleted: it is kept, or all "
        "of it is deleted.",
        json_schema_extra=frozen(),
    )
    on_truncation: Literal["Fail", "Record"] = Field(
        default="Fail",
        description="What to do if the stream loses bytes to its retention or a truncation before "
        "they are archived: fail, or archive the rest and record the gap.",
        json_schema_extra=frozen(),
    )
    suspend: Annotated[
        bool,
        Field(
            strict=True,
            description="Begin no run. A run that is going on stops, and continues from there "
            "later.",
        ),
    ] = False
    limits: Annotated[
        ArchiveLimits,
        Field(description="The limits of a run. They may be changed while it goes on."),
    ] = ArchiveLimits()
    backoff_limit: Annotated[
        int,
        Field(
            ge=0,
            le=100,
            strict=True,
            description="How many attempts of a run in a row may fail without any progress. With "
            "one more the run has failed. The next run that is due begins anew.",
        ),
    ] = DEFAULT_BACKOFF_LIMIT
    active_deadline_seconds: Annotated[int, Field(ge=60, le=31_536_000, strict=True)] | None = (
        Field(
            default=None,
            description="Deadline, in seconds from a run's first attempt. A run that is not done "
            "by then has failed. No deadline when left out.",
        )
    )
    runtime: Annotated[Runtime, Field(description="The pods that runs use.")] = RuntimeSpec()

    _guards_objects = field_validator("max_events", mode="after")(guards_objects)

    @field_validator("verify", mode="after")
    @classmethod
    def _drills_have_a_place(
        cls, verify: VerifySpec | None, info: ValidationInfo
    ) -> VerifySpec | None:
        """Refuse drills that would restore to another namespace.

        Raises:
            ValueError: so it would be.
        """
        source = info.data.get("source")  # absent if it is wrong itself
        if verify is None or verify.target is not None or source is None:
            return verify
        if source.store_ref.namespace is not None:
            raise ValueError(_NO_PLACE)
        return verify

    @property
    def origins(self) -> tuple[tuple[str, ArchivedStream], ...]:
        """The source, behind the path of its field."""
        return (("spec.source", self.source),)

    @property
    def goal(self) -> tuple[str, Destination]:
        """The destination, behind the path of its field."""
        return "spec.destination", self.destination

    @property
    def drills(self) -> tuple[str, DrillTarget] | None:
        """Where scratch streams of drills are made, behind the path of its field.

        None without drills, if the source is in a StreamStore of another namespace.
        """
        given = None if self.verify is None else self.verify.target
        if given is not None:
            return "spec.verify.target", given
        if self.source.ref.namespace is not None:
            return None
        # The scope may be one that no stream is made in. Then the API server refuses the drill.
        return "spec.source", DrillTarget.at(self.source.store, self.source.scope)

    @property
    def most_events(self) -> int:
        """How many event objects a run may make at most, with EventObjects."""
        return self.max_events or DEFAULT_MAX_EVENTS

    def identity(self) -> dict[str, Any]:
        """Return the part of the spec that identifies the archive.

        Defaults are left out, so that a field that a later version adds changes no identity.
        """
        parts = {"source", "destination", "format"}
        return self.model_dump(mode="json", by_alias=True, include=parts, exclude_defaults=True)


class StreamArchive(Resource):
    """One stream, archived again and again; each run adds the new bytes."""

    kind: Literal["StreamArchive"]
    spec: StreamArchiveSpec
