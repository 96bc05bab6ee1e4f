"""Define source and target of a ScopeCopy: scopes, or archives of their streams."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import ConfigDict, Field, ValidationInfo, field_validator

from sluice.api.fields.archives import (
    DEFAULT_MAX_EVENTS,
    FORMATS,
    MAX_EVENTS_RULE,
    FormatName,
    InArchives,
    MaxEvents,
    OrArchive,
    guards_objects,
    or_archive,
)
from sluice.api.fields.backends import Holds, either
from sluice.api.fields.common import (
    ArchiveFolder,
    ArchivePath,
    NameInStore,
    NewNameInStore,
    StoreRef,
)
from sluice.api.rules import Rule, frozen, rules
from sluice.api.scalars.instant import Instant

if TYPE_CHECKING:
    from datetime import datetime

_FROM_SCOPE = "a source is a scope (storeRef and scope) or a folder of archives (archive): name it"
_TO_SCOPE = "a target is a scope (storeRef and scope) or a folder of archives (archive): name it"
_IN_PLACE = "archive stands in place of storeRef and scope: remove these"
_ONE_RUN = "run and until both say which run is restored: give one of them"
_NO_SCOPE = "archives need no scope: remove scopePolicy, or name a scope in place of archive"


class ArchivedScope(InArchives):
    """A folder of archives, each under the name of its stream, and which runs are restored."""

    model_config = ConfigDict(
        json_schema_extra=rules(Rule("!has(self.run) || !has(self.until)", _ONE_RUN, path=".until"))
    )

    store_ref: StoreRef = Field(
        description="The StreamStore that holds the archives. "
        f"Its kind is {either(Holds.ARCHIVES)}."
    )
    path: ArchivePath = Field(
        description="The folder in the store. The archive at PATH/NAME holds the stream NAME."
    )
    run: Annotated[int, Field(ge=1, le=1 << 53, strict=True)] | None = Field(
        default=None,
        description="The number of a run of the scope that a ScopeCopy with a schedule has made. "
        "The streams that it archived are restored, also if others failed.",
    )
    until: Instant | None = Field(
        default=None,
        description="A time, such as 2026-05-04T12:00:00Z. The last complete run of the scope that "
        "ends no later is restored; without runs of the scope, the last run of each archive that "
        "ends no later. When run and until are left out, it is the last one.",
    )

    @field_validator("until", mode="after")
    @classmethod
    def _one_run(cls, until: datetime | None, info: ValidationInfo) -> datetime | None:
        if until is not None and info.data.get("run") is not None:
            raise ValueError(_ONE_RUN)
        return until


class ScopeSource(OrArchive):
    """The scope to copy, or archives to restore streams from; scope is empty then.

    Each stream is copied from its oldest byte to its end when the copy begins.
    """

    needed = _FROM_SCOPE
    in_place = _IN_PLACE

    model_config = ConfigDict(
        json_schema_extra=or_archive("storeRef", "scope", needed=_FROM_SCOPE, in_place=_IN_PLACE)
    )

    archive: ArchivedScope | None = Field(
        default=None,
        description="Archives to restore streams from, in place of storeRef and scope.",
    )
    store_ref: StoreRef | None = Field(
        default=None,
        validate_default=True,
        description="The StreamStore that holds the scope.",
    )
    scope: NameInStore = Field(default="", validate_default=True, description="The scope's name.")

    @property
    def title(self) -> str:
        """The scope's name, or the path of the archives' folder, for messages."""
        return self.scope if self.archive is None else self.archive.path


class ArchivesMade(InArchives):
    """Archives to make, or to add a run to, one for each stream."""

    model_config = ConfigDict(json_schema_extra=rules(MAX_EVENTS_RULE))

    store_ref: StoreRef = Field(
        description="The StreamStore to archive to. Its kind is s3, or with the "
        "command line also volume."
    )
    path: ArchiveFolder = Field(
        description="The folder in the store. The stream NAME is archived at PATH/NAME."
    )
    format: FormatName = Field(default="Segments", description=FORMATS, json_schema_extra=frozen())
    max_events: MaxEvents = None

    _guards_objects = field_validator("max_events", mode="after")(guards_objects)

    @property
    def most_events(self) -> int:
        """How many event objects a stream's run may make at most, with EventObjects."""
        return self.max_events or DEFAULT_MAX_EVENTS


class ScopeTarget(OrArchive):
    """The scope to copy to, or a folder to archive the streams in; scope is empty then."""

    needed = _TO_SCOPE
    in_place = _IN_PLACE

    model_config = ConfigDict(
        json_schema_extra=or_archive(
            "storeRef",
            "scope",
            needed=_TO_SCOPE,
            in_place=_IN_PLACE,
            more=(
                Rule(
                    "!has(self.archive) || !has(self.scopePolicy)"
                    " || self.scopePolicy == 'MustExist'",
                    _NO_SCOPE,
                    path=".scopePolicy",
                    reason="FieldValueForbidden",
                ),
            ),
        )
    )

    archive: ArchivesMade | None = Field(
        default=None,
        description="Where to archive each stream, in place of storeRef and scope.",
    )
    store_ref: StoreRef | None = Field(
        default=None,
        validate_default=True,
        description="The StreamStore that holds the scope.",
    )
    scope: NewNameInStore = Field(
        default="", validate_default=True, description="The scope's name."
    )
    scope_policy: Literal["MustExist", "CreateIfAbsent"] = Field(
        default="MustExist",
        description="What to do if the scope does not exist: refuse to begin, or create it.",
        json_schema_extra=frozen(),
    )

    @field_validator("scope_policy", mode="after")
    @classmethod
    def _of_scope(
        cls, chosen: Literal["MustExist", "CreateIfAbsent"], info: ValidationInfo
    ) -> Literal["MustExist", "CreateIfAbsent"]:
        # The API server writes the default into each resource, so users may not have chosen it.
        if chosen != "MustExist" and info.data.get("archive") is not None:
            raise ValueError(_NO_SCOPE)
        return chosen

    @property
    def title(self) -> str:
        """The scope's name, or the path of the archives' folder, for messages."""
        return self.scope if self.archive is None else self.archive.path
