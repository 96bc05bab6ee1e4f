"""Define StreamCopy: one stream, copied exactly once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self

from pydantic import (
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from sluice.api.fields.archives import InArchives, OrArchive, or_archive
from sluice.api.fields.backends import Holds, either
from sluice.api.fields.common import (
    ApiModel,
    ArchivePath,
    InStore,
    NameInStore,
    NewNameInStore,
    Resource,
    StoreRef,
    other_store,
)
from sluice.api.fields.continuous import (
    LAG_OBJECTIVE_SECONDS,
    CutoverField,
    LagObjective,
    Mode,
    ReaderGroups,
    StopWhen,
)
from sluice.api.fields.hooks import Hooks, HooksSpec
from sluice.api.fields.ranges import MOST_RANGES, RangeSpec
from sluice.api.fields.running import (
    DEFAULT_BACKOFF_LIMIT,
    BackoffLimit,
    DeadlineSeconds,
    Limits,
    LimitsSpec,
    Runtime,
    RuntimeSpec,
    Suspend,
    TtlSeconds,
)
from sluice.api.fields.together import OF_STREAMS
from sluice.api.rules import Rule, exactly_one, frozen, immutable, rules
from sluice.api.scalars.instant import Instant

if TYPE_CHECKING:
    from datetime import datetime

MOST_SOURCES: Final = 64

_WHAT = "origin of the bytes"
_ANOTHER = "make another copy, under another name"
_ONTO_ITSELF = (
    "the target is the source: a stream cannot be copied onto itself, "
    "name another stream, scope or store"
)
_ONE_RUN = "run and until both say which run is restored: give one of them"
_STREAM_OR_ARCHIVE = "a source is a stream (storeRef, scope and stream) or an archive: name it"
_IN_PLACE = "archive stands in place of storeRef, scope, stream and ranges: remove these"


class ArchiveSource(InArchives):
    """A run of an archive: the last run, a run by its number, or the last run up to a time."""

    model_config = ConfigDict(
        json_schema_extra=rules(Rule("!has(self.run) || !has(self.until)", _ONE_RUN, path=".until"))
    )

    store_ref: StoreRef = Field(
        description=f"The StreamStore that holds the archive. Its kind is {either(Holds.ARCHIVES)}."
    )
    path: ArchivePath = Field(description="The archive's path in the store.")
    run: Annotated[int, Field(ge=1, le=1 << 53, strict=True)] | None = Field(
        default=None,
        description="The number of a run. The stream is restored up to the end of that run.",
    )
    until: Instant | None = Field(
        default=None,
        description="A time, such as 2026-05-04T12:00:00Z. The last run that ends no later is "
        "restored.",
    )

    @field_validator("until", mode="after")
    @classmethod
    def _one_run(cls, until: datetime | None, info: ValidationInfo) -> datetime | None:
        if until is not None and info.data.get("run") is not None:
            raise ValueError(_ONE_RUN)
        return until


class SourceSpec(OrArchive):
    """The stream to copy, or an archive to restore it from; scope and stream are empty then.

    Without ranges, a stream is copied from its oldest byte to its end when the copy begins.
    """

    needed = _STREAM_OR_ARCHIVE
    in_place = _IN_PLACE

    model_config = ConfigDict(
        json_schema_extra=or_archive(
            "storeRef",
            "scope",
            "stream",
            needed=_STREAM_OR_ARCHIVE,
            in_place=_IN_PLACE,
            others=("ranges",),
        )
    )

    archive: ArchiveSource | None = Field(
        default=None,
        description="An archive to restore the stream from, in place of all other fields.",
    )
    store_ref: StoreRef | None = Field(
        default=None,
        validate_default=True,
        description="The StreamStore that holds the stream.",
    )
    scope: NameInStore = Field(default="", validate_default=True, description="The stream's scope.")
    stream: NameInStore = Field(default="", validate_default=True, description="The stream's name.")
    ranges: Annotated[tuple[RangeSpec, ...], Field(max_length=MOST_RANGES)] = Field(
        default=(),
        description="The ranges of the stream that are copied, one after the other. From head to "
        "tail when left out.",
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )

    @field_validator("ranges", mode="after")
    @classmethod
    def _of_stream_too(
        cls, ranges: tuple[RangeSpec, ...], info: ValidationInfo
    ) -> tuple[RangeSpec, ...]:
        if ranges and info.data.get("archive") is not None:
            raise ValueError(_IN_PLACE)
        return ranges

    @property
    def title(self) -> str:
        """The stream with its scope, or the archive's path, for messages."""
        return f"{self.scope}/{self.stream}" if self.archive is None else self.archive.path


class Target(InStore):
    """The stream to make, or to append to."""

    store_ref: StoreRef = Field(description="The StreamStore to copy to.")
    scope: NewNameInStore = Field(description="The target's scope.")
    stream: NewNameInStore = Field(description="The target's name.")
    scope_policy: Literal["MustExist", "CreateIfAbsent"] = Field(
        default="MustExist",
        description="What to do if the scope does not exist: refuse to begin, or create it.",
        json_schema_extra=frozen(),
    )
    on_exists: Literal["Fail", "Append"] = Field(
        default="Fail",
        description="What to do if the stream exists and this copy did not make it: fail, or "
        "append to it once.",
        json_schema_extra=frozen(),
    )
    seal_when_done: bool = Field(
        default=False,
        strict=True,
        description="Seal the target once it is complete. It then takes no more events, and a seal "
        "cannot be undone.",
        json_schema_extra=frozen(),
    )

    @property
    def title(self) -> str:
        """The stream with its scope, for messages."""
        return f"{self.scope}/{self.stream}"


_NOT_MOVED = (
    "sourceOnComplete: Delete moves one whole stream of a user's to a new one: give one source "
    "without ranges, whose name does not begin with _, no archive, and onExists: Fail"
)
_NO_GAPS = (
    "a copy that appends records no gaps: take onTruncation: Fail, or a target that is made anew"
)


_SAME = (
    f"has({{0}}.archive) || {other_store('{0}', 'self.target')}"
    " || {0}.scope != self.target.scope || {0}.stream != self.target.stream"
)


class StreamCopySpec(ApiModel):
    """The source, the target, and how to copy."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            exactly_one(_WHAT, "source", "sources"),
            Rule(
                "!has(self.source) || " + _SAME.format("self.source"), _ONTO_ITSELF, path=".target"
            ),
            Rule(
                f"!has(self.sources) || self.sources.all(one, {_SAME.format('one')})",
                _ONTO_ITSELF,
                path=".target",
            ),
            Rule(
                "!has(self.onTruncation) || self.onTruncation == 'Fail'"
                " || !has(self.target.onExists) || self.target.onExists == 'Fail'",
                _NO_GAPS,
                path=".onTruncation",
            ),
            Rule(
                "!has(self.sourceOnComplete) || self.sourceOnComplete == 'Retain'"
                " || (has(self.source) && !has(self.source.archive) && (!has(self.source.ranges)"
                " || size(self.source.ranges) == 0) && !self.source.stream.startsWith('_')"
                " && (!has(self.target.onExists) || self.target.onExists == 'Fail'))",
                _NOT_MOVED,
                path=".sourceOnComplete",
            ),
            Rule(
                "has(self.source) == has(oldSelf.source)",
                f"the source cannot be changed: {_ANOTHER}",
                path=".source",
                reason="FieldValueForbidden",
            ),
            *OF_STREAMS.rules,
        )
    )

    source: SourceSpec | None = Field(
        default=None,
        description="The stream to copy. Cannot be changed.",
        json_schema_extra=immutable("the source", _ANOTHER),
    )
    sources: (
        Annotated[tuple[SourceSpec, ...], Field(min_length=1, max_length=MOST_SOURCES)] | None
    ) = Field(
        default=None,
        description="Streams to copy into one target, one after the other in this order. "
        "Cannot be changed.",
        json_schema_extra={
            "x-kubernetes-list-type": "atomic",
            **immutable("the sources", _ANOTHER),
        },
    )
    target: Target = Field(
        description="The stream to make, or to append to. Cannot be changed.",
        json_schema_extra=immutable("the target", _ANOTHER),
    )
    mode: Mode = Field(
        default="Snapshot",
        description="Where the copy ends. Snapshot ends where the source ended when the copy "
        "began. Continuous then follows the source, until stopWhen, cutover or the source's seal "
        "ends it. Cannot be changed.",
        json_schema_extra=frozen() | immutable("mode", _ANOTHER),
    )
    stop_when: StopWhen = None
    cutover: CutoverField = "None"
    reader_groups: ReaderGroups = ()
    lag_objective_seconds: LagObjective = LAG_OBJECTIVE_SECONDS
    on_truncation: Literal["Fail", "Record"] = Field(
        default="Fail",
        description="What to do if a source loses bytes to its retention or a truncation before "
        "the copy has read them: fail, or copy the rest and record the gap. Cannot be changed.",
        json_schema_extra=frozen() | immutable("onTruncation", _ANOTHER),
    )
    source_on_complete: Literal["Retain", "Delete"] = Field(
        default="Retain",
        description="What happens to the source. Retain leaves it as it is. Delete seals it before "
        "its last bytes are copied, and deletes it once the target is complete. Cannot be changed.",
        json_schema_extra=frozen() | immutable("sourceOnComplete", _ANOTHER),
    )
    hooks: Hooks = HooksSpec()
    suspend: Suspend = False
    limits: Limits = LimitsSpec()
    backoff_limit: BackoffLimit = DEFAULT_BACKOFF_LIMIT
    active_deadline_seconds: DeadlineSeconds = None
    ttl_seconds_after_finished: TtlSeconds = None
    runtime: Runtime = RuntimeSpec()

    @field_validator("target", mode="after")
    @classmethod
    def _target_is_not_source(cls, target: Target, info: ValidationInfo) -> Target:
        given = (info.data.get("source"), *(info.data.get("sources") or ()))
        place = (target.store_ref, target.scope, target.stream)
        if any(one and (one.store_ref, one.scope, one.stream) == place for one in given):
            raise ValueError(_ONTO_ITSELF)
        return target

    @field_validator("on_truncation", mode="after")
    @classmethod
    def _appends_without_gaps(
        cls, chosen: Literal["Fail", "Record"], info: ValidationInfo
    ) -> Literal["Fail", "Record"]:
        target = info.data.get("target")
        if chosen == "Record" and target is not None and target.on_exists == "Append":
            raise ValueError(_NO_GAPS)
        return chosen

    @field_validator("source_on_complete", mode="after")
    @classmethod
    def _moves_one_whole_stream(
        cls, chosen: Literal["Retain", "Delete"], info: ValidationInfo
    ) -> Literal["Retain", "Delete"]:
        source, target = info.data.get("source"), info.data.get("target")
        if chosen == "Retain" or target is None or "source" not in info.data:
            return chosen
        if (
            source is None
            or source.archive is not None
            or source.ranges
            or source.stream.startswith("_")
            or target.on_exists == "Append"
        ):
            raise ValueError(_NOT_MOVED)
        return chosen

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.source is None) == (self.sources is None):
            raise ValueError(f"exactly one {_WHAT} is needed: source, sources")
        OF_STREAMS.check(self, follows=self.follows)
        return self

    @property
    def follows(self) -> bool:
        """Whether the copy goes on behind its bounds with what comes in its source."""
        return self.mode == "Continuous"

    @property
    def origins(self) -> tuple[tuple[str, SourceSpec], ...]:
        """The sources in order, each behind the path of its field."""
        if self.source is not None:
            return (("spec.source", self.source),)
        return tuple((f"spec.sources[{i}]", one) for i, one in enumerate(self.sources or ()))

    @property
    def goal(self) -> tuple[str, Target]:
        """The target, behind the path of its field."""
        return "spec.target", self.target

    def identity(self) -> dict[str, Any]:
        """Return the part of the spec that identifies the copy.

        Defaults are left out, so that a field that a later version adds changes no copy's identity.
        """
        parts = {"source", "sources", "target", "mode"}
        return self.model_dump(mode="json", by_alias=True, include=parts, exclude_defaults=True)


class StreamCopy(Resource):
    """One stream, copied exactly once."""

    kind: Literal["StreamCopy"]
    spec: StreamCopySpec
