"""Define ScopeCopy: all streams of a scope, or selected ones, each copied exactly once."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal, Self, TypeVar

from pydantic import ConfigDict, Field, ValidationInfo, field_validator, model_validator

from sluice.api.fields.common import ApiModel, Resource, other_store
from sluice.api.fields.continuous import (
    LAG_OBJECTIVE_SECONDS,
    LagObjective,
    Mode,
    ScopeCutover,
    ScopeStopWhen,
)
from sluice.api.fields.hooks import Hooks, HooksSpec
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
from sluice.api.fields.schedule import RunRetentionSpec, Schedule
from sluice.api.fields.scopeplaces import ScopeSource, ScopeTarget
from sluice.api.fields.selection import ATOMIC, RenameSpec, StreamsSpec
from sluice.api.fields.together import OF_SCOPES
from sluice.api.rules import Rule, frozen, immutable, rules

MOST_RENAMES: Final = 64

_ANOTHER = "make another copy, under another name"
_NEW = "^[A-Za-z0-9.-]*$"
_NO_PREFIX = (
    "names in a store have letters, digits, . and - only, and those with _ are its own: choose "
    "another toPrefix"
)
_ONTO_ITSELF = "source and target are one scope: rename the streams, or name another scope or store"
_MIRRORED = (
    "archives are not copied to archives: mirror the bucket or the volume with a tool of its own"
)
_NO_RUNS = "streams that are copied to a scope have no runs: remove {}, or name target.archive"
_ONE_RUN = "each run adds to the archives of the runs before: take onExists: Append"
_NO_MOVES = "streams are moved once: take sourceOnComplete: Retain, or remove schedule to move them"
_NO_HOOKS = "hooks are for copies that end: remove hooks, or schedule"
_NO_END = "a copy with a schedule does not finish: remove ttlSecondsAfterFinished"
_NO_GAPS = "copies that append record no gaps: take onTruncation: Fail, or onExists: Fail or Skip"
_NOT_MOVED = (
    "sourceOnComplete: Delete moves users' streams to new ones: take onExists: Fail or Skip, and "
    "include no names that begin with _"
)

_NOT_DELETED = (
    "restoring deletes no archives: take sourceOnComplete: Retain, and delete them when they "
    "are not needed"
)

_Given = TypeVar("_Given", Schedule | None, RunRetentionSpec | None)


class ScopeCopySpec(ApiModel):
    """The source, the target, and how to copy."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            Rule(
                "!has(self.source.archive) || !has(self.target.archive)", _MIRRORED, path=".target"
            ),
            Rule(
                "has(self.target.archive) || !has(self.rename)"
                f" || self.rename.all(one, one.toPrefix.matches('{_NEW}'))",
                _NO_PREFIX,
                path=".rename",
            ),
            Rule(
                "has(self.source.archive) || has(self.target.archive)"
                f" || {other_store('self.source', 'self.target')}"
                " || self.source.scope != self.target.scope"
                " || (has(self.rename) && size(self.rename) > 0)",
                _ONTO_ITSELF,
                path=".rename",
            ),
            Rule(
                "has(self.target.archive) || !has(self.onTruncation)"
                " || self.onTruncation == 'Fail' || !has(self.onExists)"
                " || self.onExists != 'Append'",
                _NO_GAPS,
                path=".onTruncation",
            ),
            Rule(
                "!has(self.sourceOnComplete) || self.sourceOnComplete == 'Retain'"
                " || ((has(self.target.archive) || !has(self.onExists)"
                " || self.onExists != 'Append')"
                " && (!has(self.streams) || !has(self.streams.include)"
                " || !self.streams.include.exists(one,"
                " one.type != 'Tag' && one.value.startsWith('_'))))",
                _NOT_MOVED,
                path=".sourceOnComplete",
            ),
            Rule(
                "!has(self.sourceOnComplete) || self.sourceOnComplete == 'Retain'"
                " || !has(self.source.archive)",
                _NOT_DELETED,
                path=".sourceOnComplete",
            ),
            *(
                Rule(
                    f"has(self.target.archive) || !has(self.{name})",
                    _NO_RUNS.format(name),
                    path=f".{name}",
                    reason="FieldValueForbidden",
                )
                for name in ("schedule", "retention")
            ),
            Rule(
                "!has(self.schedule) || !has(self.target.archive)"
                " || (has(self.onExists) && self.onExists == 'Append')",
                _ONE_RUN,
                path=".schedule",
            ),
            Rule(
                "!has(self.schedule) || !has(self.target.archive)"
                " || !has(self.sourceOnComplete) || self.sourceOnComplete == 'Retain'",
                _NO_MOVES,
                path=".schedule",
            ),
            Rule(
                "!has(self.schedule) || !has(self.hooks)",
                _NO_HOOKS,
                path=".hooks",
                reason="FieldValueForbidden",
            ),
            Rule(
                "!has(self.schedule) || !has(self.ttlSecondsAfterFinished)",
                _NO_END,
                path=".ttlSecondsAfterFinished",
                reason="FieldValueForbidden",
            ),
            Rule(
                "has(self.schedule) == has(oldSelf.schedule)",
                f"schedule can be changed, but neither added nor removed: {_ANOTHER}; "
                "to make no runs, set suspend",
                path=".schedule",
                reason="FieldValueForbidden",
            ),
            *(
                Rule(
                    f"has(self.{name}) == has(oldSelf.{name})",
                    f"{name} cannot be changed: {_ANOTHER}",
                    path=f".{name}",
                    reason="FieldValueForbidden",
                )
                for name in ("streams", "rename")
            ),
            *OF_SCOPES.rules,
        )
    )

    source: ScopeSource = Field(
        description="The scope to copy, or archives to restore. Cannot be changed.",
        json_schema_extra=immutable("the source", _ANOTHER),
    )
    target: ScopeTarget = Field(
        description="The scope to copy to, or the folder to archive in. Cannot be changed.",
        json_schema_extra=immutable("the target", _ANOTHER),
    )
    streams: StreamsSpec = Field(
        default=StreamsSpec(),
        description="Which streams are copied; all except internal ones and those of "
        "EphemeralStreams when left out. Cannot be changed.",
        json_schema_extra=immutable("streams", _ANOTHER),
    )
    rename: Annotated[tuple[RenameSpec, ...], Field(max_length=MOST_RENAMES)] = Field(
        default=(),
        validate_default=True,
        description="Other names for the targets. The first rule that fits a stream's name holds. "
        "Without one, a target has the name of its source. Cannot be changed.",
        json_schema_extra=ATOMIC | immutable("rename", _ANOTHER),
    )
    on_exists: Literal["Fail", "Skip", "Append"] = Field(
        default="Fail",
        description="What to do if targets exist and this copy did not make them. Fail begins "
        "nothing, Skip leaves these streams out, Append appends to each target once. If the target "
        "is an archive of the same stream, Append adds the new bytes. Cannot be changed.",
        json_schema_extra=frozen() | immutable("onExists", _ANOTHER),
    )
    mode: Mode = Field(
        default="Snapshot",
        description="Where the copy ends. Snapshot ends each stream where it ended when the copy "
        "began. Continuous then follows the streams, and those that the scope gets later, until "
        "stopWhen or cutover ends it, or all its sources are sealed. Cannot be changed.",
        json_schema_extra=frozen() | immutable("mode", _ANOTHER),
    )
    stop_when: ScopeStopWhen = None
    cutover: ScopeCutover = "None"
    lag_objective_seconds: LagObjective = LAG_OBJECTIVE_SECONDS
    on_truncation: Literal["Fail", "Record"] = Field(
        default="Fail",
        description="What to do if a stream loses bytes to its retention or a truncation before "
        "the copy has read them: fail this stream, or copy the rest and record the gap. Cannot be "
        "changed.",
        json_schema_extra=frozen() | immutable("onTruncation", _ANOTHER),
    )
    source_on_complete: Literal["Retain", "Delete"] = Field(
        default="Retain",
        description="What happens to the sources. Retain leaves them as they are. Delete seals "
        "each stream before its last bytes are copied, and deletes it once its target is complete. "
        "Finally it deletes the scope if that is empty. Cannot be changed.",
        json_schema_extra=frozen() | immutable("sourceOnComplete", _ANOTHER),
    )
    schedule: Schedule | None = Field(
        default=None,
        description="When the streams are archived, again and again: each run adds the new bytes "
        "of all streams that are selected then. Only for archives, and with onExists: Append. Can "
        "be changed, but neither added nor removed.",
    )
    retention: RunRetentionSpec | None = Field(
        default=None,
        description="Which runs are kept when a new run of a stream is recorded; all when left "
        "out. The newest verified run of each stream is always kept, and so is a run that is being "
        "restored. Only for archives.",
    )
    failure_policy: Literal["Continue", "Stop"] = Field(
        default="Continue",
        description="What to do when a stream cannot be copied: go on with the others, or begin "
        "no more streams. May be changed while the copy runs.",
    )
    parallelism: Annotated[int, Field(ge=1, le=64, strict=True)] | None = Field(
        default=None,
        description="How many streams are copied at the same time at most; 16 when left out. May "
        "be changed while the copy runs.",
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
    def _not_mirrored(cls, target: ScopeTarget, info: ValidationInfo) -> ScopeTarget:
        source = info.data.get("source")
        if source is not None and source.archive is not None and target.archive is not None:
            raise ValueError(_MIRRORED)
        return target

    @field_validator("rename", mode="after")
    @classmethod
    def _names_can_be_given(
        cls, rename: tuple[RenameSpec, ...], info: ValidationInfo
    ) -> tuple[RenameSpec, ...]:
        target = info.data.get("target")
        if target is None or target.archive is not None:
            return rename
        if not all(re.fullmatch(_NEW, one.to_prefix) for one in rename):
            raise ValueError(_NO_PREFIX)
        return rename

    @field_validator("rename", mode="after")
    @classmethod
    def _target_is_not_source(
        cls, rename: tuple[RenameSpec, ...], info: ValidationInfo
    ) -> tuple[RenameSpec, ...]:
        source, target = info.data.get("source"), info.data.get("target")
        if rename or source is None or target is None or source.archive or target.archive:
            return rename
        if (source.store_ref, source.scope) == (target.store_ref, target.scope):
            raise ValueError(_ONTO_ITSELF)
        return rename

    @field_validator("on_truncation", mode="after")
    @classmethod
    def _appends_without_gaps(
        cls, chosen: Literal["Fail", "Record"], info: ValidationInfo
    ) -> Literal["Fail", "Record"]:
        target = info.data.get("target")
        if chosen == "Fail" or target is None or target.archive is not None:
            return chosen
        if info.data.get("on_exists") == "Append":
            raise ValueError(_NO_GAPS)
        return chosen

    @field_validator("source_on_complete", mode="after")
    @classmethod
    def _moves_to_new_streams(
        cls, chosen: Literal["Retain", "Delete"], info: ValidationInfo
    ) -> Literal["Retain", "Delete"]:
        source, target = info.data.get("source"), info.data.get("target")
        if chosen == "Retain" or source is None or target is None:
            return chosen
        if source.archive is not None:
            raise ValueError(_NOT_DELETED)
        streams = info.data.get("streams")
        included = streams.include if streams is not None else ()
        internal = any(one.type != "Tag" and one.value.startswith("_") for one in included)
        appends = info.data.get("on_exists") == "Append" and target.archive is None
        if internal or appends:
            raise ValueError(_NOT_MOVED)
        return chosen

    @field_validator("hooks", mode="after")
    @classmethod
    def _once(cls, hooks: HooksSpec, info: ValidationInfo) -> HooksSpec:
        if info.data.get("schedule") is not None:
            raise ValueError(_NO_HOOKS)
        return hooks

    @field_validator("ttl_seconds_after_finished", mode="after")
    @classmethod
    def _finishes(cls, seconds: int | None, info: ValidationInfo) -> int | None:
        if seconds is not None and info.data.get("schedule") is not None:
            raise ValueError(_NO_END)
        return seconds

    @field_validator("schedule", "retention", mode="after")
    @classmethod
    def _of_archives(cls, given: _Given, info: ValidationInfo) -> _Given:
        target = info.data.get("target")
        if given is None or target is None:
            return given
        if target.archive is None:
            raise ValueError(_NO_RUNS.format(info.field_name))
        if isinstance(given, Schedule):
            if info.data.get("on_exists", "Append") != "Append":
                raise ValueError(_ONE_RUN)
            if info.data.get("source_on_complete", "Retain") != "Retain":
                raise ValueError(_NO_MOVES)
        return given

    @model_validator(mode="after")
    def _go_together(self) -> Self:
        OF_SCOPES.check(self, follows=self.follows)
        return self

    @property
    def follows(self) -> bool:
        """Whether the copy goes on behind its bounds with what comes in its sources."""
        return self.mode == "Continuous"

    @property
    def origins(self) -> tuple[tuple[str, ScopeSource], ...]:
        """The source, behind the path of its field."""
        return (("spec.source", self.source),)

    @property
    def goal(self) -> tuple[str, ScopeTarget]:
        """The target, behind the path of its field."""
        return "spec.target", self.target

    def identity(self) -> dict[str, Any]:
        """Return the part of the spec that identifies the copy.

        Defaults are left out, so that a field that a later version adds changes no copy's identity.
        """
        parts = {"source", "target", "streams", "rename", "on_exists", "mode"}
        return self.model_dump(mode="json", by_alias=True, include=parts, exclude_defaults=True)


class ScopeCopy(Resource):
    """All streams of a scope, or selected ones, each copied exactly once."""

    kind: Literal["ScopeCopy"]
    spec: ScopeCopySpec
