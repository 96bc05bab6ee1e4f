"""StreamArchive: one stream, archived again and again, each time what is new."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, field_validator, model_validator

from sluice.api.fields.archives import (
    DEFAULT_MAX_EVENTS,
    FORMATS,
    MAX_EVENTS_RULE,
    FormatName,
    InArchives,
    MaxEvents,
    guards_objects,
)
from sluice.api.fields.common import (
    ApiModel,
    ArchivePath,
    InStore,
    LocalRef,
    NameInStore,
    Resource,
)
from sluice.api.fields.cron import Cron, TimeZone
from sluice.api.fields.quantities import Bytes
from sluice.api.fields.rules import Rule, frozen, immutable, rules
from sluice.api.fields.running import DEFAULT_BACKOFF_LIMIT, Runtime, RuntimeSpec

_HOURS = {"h": 1, "d": 24}
_ANOTHER = "make another StreamArchive, under another name"
_NO_RULE = "retention keeps something: give keepLast, keepWithin or both"


class ArchivedStream(InStore):
    """The stream to archive: from its oldest byte when the first run begins."""

    store_ref: LocalRef = Field(
        description="The StreamStore that holds it, of this namespace; of kind pravega."
    )
    scope: NameInStore = Field(description="Its scope.")
    stream: NameInStore = Field(description="Its name.")


class Destination(InArchives):
    """Where the archive is."""

    store_ref: LocalRef = Field(
        description="The StreamStore to archive to, of this namespace; of kind s3 or volume."
    )
    path: ArchivePath = Field(
        description="Where in the store the archive is. One stream has one path."
    )


class Schedule(ApiModel):
    """When runs begin."""

    cron: Cron = Field(
        description="Minute, hour, day of the month, month and day of the week, such as "
        '"0 3 * * *"; or @hourly, @daily, @weekly, @monthly or @yearly.'
    )
    time_zone: TimeZone = Field(
        default="Etc/UTC",
        description="Where it is the time that cron says, such as Europe/Berlin. An hour that "
        "is left out or comes twice is treated as cron of Debian does.",
    )
    starting_deadline_seconds: Annotated[int, Field(ge=10, le=31_536_000, strict=True)] | None = (
        Field(
            default=None,
            description="Seconds after its time for which a run may still begin. A run that is "
            "later is left out; the last one that is due is made up for, however late, when this "
            "is left out.",
        )
    )


class RunRetentionSpec(ApiModel):
    """Which runs are kept: those that any of the rules keeps."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            Rule("has(self.keepLast) || has(self.keepWithin)", _NO_RULE, path=".keepLast")
        )
    )

    keep_last: Annotated[int, Field(ge=1, le=10_000, strict=True)] | None = Field(
        default=None, description="As many of the last runs are kept."
    )
    keep_within: Annotated[str, Field(max_length=6, pattern=r"^[1-9][0-9]{0,4}[hd]$")] | None = (
        Field(
            default=None,
            description="Runs are kept for this long, in hours or days: 12h, 30d.",
        )
    )

    @model_validator(mode="after")
    def _keeps_something(self) -> Self:
        if self.keep_last is None and self.keep_within is None:
            raise ValueError(_NO_RULE)
        return self

    @property
    def seconds(self) -> int | None:
        """How long runs are kept, by keepWithin."""
        if self.keep_within is None:
            return None
        return int(self.keep_within[:-1]) * _HOURS[self.keep_within[-1]] * 3600


class ArchiveLimits(ApiModel):
    """What a run may use. May be changed while it goes on."""

    bytes_per_second: Annotated[int, Bytes("1Ki", "1Ti")] | None = Field(
        default=None,
        description="Most bytes of the stream per second, over all tasks; no limit when left out. "
        "1Ki to 1Ti.",
    )


class StreamArchiveSpec(ApiModel):
    """What is archived where, and when."""

    model_config = ConfigDict(json_schema_extra=rules(MAX_EVENTS_RULE))

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
        "sluice.dev/requestedAt.",
    )
    retention: RunRetentionSpec | None = Field(
        default=None,
        description="Which runs are kept, once another one is recorded; all when left out. The "
        "newest run that was verified is kept in any case, and one that is being restored.",
    )
    on_delete: Literal["Retain", "Delete"] = Field(
        default="Retain",
        description="What becomes of the archive when this resource is deleted: nothing, or all "
        "of it is deleted.",
        json_schema_extra=frozen(),
    )
    on_truncation: Literal["Fail", "Record"] = Field(
        default="Fail",
        description="What to do if the stream loses bytes to its retention or a truncation before "
        "they were archived: fail, or archive what is left and record the gap.",
        json_schema_extra=frozen(),
    )
    suspend: Annotated[
        bool,
        Field(
            strict=True,
            description="Begin no run. One that is going on stops, and goes on from there later.",
        ),
    ] = False
    limits: Annotated[
        ArchiveLimits, Field(description="What a run may use. May be changed while it goes on.")
    ] = ArchiveLimits()
    backoff_limit: Annotated[
        int,
        Field(
            ge=0,
            le=100,
            strict=True,
            description="Attempts of a run that may fail one after the other without any "
            "progress; one more and the run has failed. The next one that is due is made anew.",
        ),
    ] = DEFAULT_BACKOFF_LIMIT
    active_deadline_seconds: Annotated[int, Field(ge=60, le=31_536_000, strict=True)] | None = (
        Field(
            default=None,
            description="Seconds from a run's first attempt after which it has failed if it is not "
            "done; no deadline when left out.",
        )
    )
    runtime: Annotated[Runtime, Field(description="What runs run on.")] = RuntimeSpec()

    _guards_objects = field_validator("max_events", mode="after")(guards_objects)

    @property
    def origins(self) -> tuple[tuple[str, ArchivedStream], ...]:
        """What is archived, with the field that names it."""
        return (("spec.source", self.source),)

    @property
    def goal(self) -> tuple[str, Destination]:
        """Where it goes, with the field that names it."""
        return "spec.destination", self.destination

    @property
    def most_events(self) -> int:
        """With EventObjects: how many objects of events there may be."""
        return self.max_events or DEFAULT_MAX_EVENTS

    def identity(self) -> dict[str, Any]:
        """The part of the spec that makes it this archive and no other.

        Defaults are left out, so that a field that a later version adds changes no identity.
        """
        parts = {"source", "destination", "format"}
        return self.model_dump(mode="json", by_alias=True, include=parts, exclude_defaults=True)


class StreamArchive(Resource):
    """One stream, archived again and again, each time what is new."""

    kind: Literal["StreamArchive"]
    spec: StreamArchiveSpec
