"""EphemeralStream: streams that live exactly as long as their workload."""

from __future__ import annotations

from typing import Annotated, Final, Literal, Self

from pydantic import ConfigDict, Field, ValidationInfo, field_validator, model_validator

from sluice.api.fields.common import (
    NEW_NAME_RULE,
    ApiModel,
    LocalRef,
    NewNameInStore,
    Resource,
    StoreName,
)
from sluice.api.fields.quantities import Bytes
from sluice.api.fields.rules import Rule, exactly_one, immutable, one_of, rules

_WHAT = "thing to own"
LEAST_PREFIX: Final = 4
"""Characters of a prefix: a shorter one would claim what others make."""

_ANOTHER = "make another EphemeralStream, under another name"
_PREFIX_CONFIG = (
    "config describes a stream that Sluice makes, and streams under a prefix are made by their "
    "application: remove config, or name a stream"
)
_PREFIX_ADOPT = "adopt is for one stream: remove it, or use claim with streamPrefix"
_STREAM_CLAIM = "claim goes with streamPrefix: remove it, or use adopt with stream"
_NO_OWNERS = "there are no owners that could finish: add owners, or remove releaseWhen"
_FAR_OWNER = (
    "Kubernetes allows no owner reference to another namespace: set tracking to Observe, or "
    "remove namespace from the owners"
)
_RATE = "a policy that follows the load needs targetRate and scaleFactor"
_FIXED_RATE = "targetRate and scaleFactor go with a policy that follows the load"
_OURS = "tags that begin with sluice.dev/ are set by Sluice: remove them"

Seconds = Annotated[int, Field(ge=0, le=31_536_000, strict=True)]
Tag = Annotated[str, Field(min_length=1, max_length=128)]


class ScalingSpec(ApiModel):
    """How the stream changes its number of segments."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            Rule(
                "!has(self.type) || self.type == 'Fixed'"
                " || (has(self.targetRate) && has(self.scaleFactor))",
                _RATE,
                path=".targetRate",
                reason="FieldValueRequired",
            ),
            Rule(
                "(has(self.type) && self.type != 'Fixed')"
                " || (!has(self.targetRate) && !has(self.scaleFactor))",
                _FIXED_RATE,
                path=".targetRate",
                reason="FieldValueForbidden",
            ),
        )
    )

    type: Literal["Fixed", "ByEventsPerSecond", "ByBytesPerSecond"] = Field(
        default="Fixed", description="Whether the number is fixed or follows the load."
    )
    min_segments: Annotated[int, Field(ge=1, le=1000, strict=True)] = Field(
        default=1, description="Segments to begin with, and to have at least."
    )
    target_rate: Annotated[int, Field(ge=1, le=1_000_000_000, strict=True)] | None = Field(
        default=None,
        description="What one segment is to take: events per second, or KiB per second for "
        "ByBytesPerSecond.",
    )
    scale_factor: Annotated[int, Field(ge=2, le=16, strict=True)] | None = Field(
        default=None, description="Into how many segments a busy one is split."
    )

    @model_validator(mode="after")
    def _rate_goes_with_type(self) -> Self:
        given = (self.target_rate is not None, self.scale_factor is not None)
        if self.type == "Fixed" and any(given):
            raise ValueError(_FIXED_RATE)
        if self.type != "Fixed" and not all(given):
            raise ValueError(_RATE)
        return self


class RetentionSpec(ApiModel):
    """What the store drops by itself."""

    model_config = ConfigDict(json_schema_extra=one_of("kind of retention", "seconds", "bytes"))

    seconds: Annotated[int, Field(ge=1, le=315_360_000, strict=True)] | None = Field(
        default=None, description="Events older than this are dropped."
    )
    bytes: Annotated[int, Bytes("1Mi", "1Ti")] | None = Field(
        default=None, description="The oldest events beyond this size are dropped. 1Mi to 1Ti."
    )

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if (self.seconds is None) == (self.bytes is None):
            raise ValueError("exactly one kind of retention is needed: seconds, bytes")
        return self


class StreamConfigSpec(ApiModel):
    """How the stream is made."""

    scaling: ScalingSpec = Field(default=ScalingSpec(), description="Its segments.")
    retention: RetentionSpec | None = Field(
        default=None, description="What the store drops by itself; nothing when left out."
    )
    tags: Annotated[tuple[Tag, ...], Field(max_length=16)] = Field(
        default=(),
        description="Tags of the stream, beside those of Sluice.",
        json_schema_extra={
            "x-kubernetes-list-type": "set",
            **rules(
                Rule(
                    "!self.exists(tag, tag.startsWith('sluice.dev/'))",
                    _OURS,
                    reason="FieldValueForbidden",
                )
            ),
        },
    )

    @field_validator("tags", mode="after")
    @classmethod
    def _none_of_ours(cls, tags: tuple[str, ...]) -> tuple[str, ...]:
        if any(tag.startswith("sluice.dev/") for tag in tags):
            raise ValueError(_OURS)
        if len(set(tags)) < len(tags):
            raise ValueError("a tag is there twice: remove one")
        return tags


class Owner(ApiModel):
    """A workload that needs the stream."""

    api_version: Annotated[
        str, Field(min_length=1, max_length=253, pattern=r"^([a-z0-9.-]+/)?v[0-9][a-z0-9]*$")
    ] = Field(description="As the owner's manifest has it, such as apps/v1.")
    kind: Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[A-Z][A-Za-z0-9]*$")] = (
        Field(description="Of any kind, such as Deployment.")
    )
    name: Annotated[
        str, Field(min_length=1, max_length=253, pattern=r"^[a-z0-9]([a-z0-9.:-]*[a-z0-9])?$")
    ] = Field(description="Its name.")
    namespace: StoreName | None = Field(
        default=None,
        description="Its namespace, if it is another; with tracking Observe, and where the "
        "StreamStore's access allows it.",
    )


class EphemeralStreamSpec(ApiModel):
    """Which streams live as long as which workload."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            exactly_one(_WHAT, "stream", "streamPrefix"),
            Rule(
                "has(self.stream) == has(oldSelf.stream)"
                " && (!has(self.stream) || self.stream == oldSelf.stream)"
                " && (!has(self.streamPrefix) || self.streamPrefix == oldSelf.streamPrefix)",
                f"the stream cannot be changed: {_ANOTHER}",
                path=".stream",
                reason="FieldValueForbidden",
            ),
            Rule(
                "!has(self.config) || !has(self.streamPrefix)",
                _PREFIX_CONFIG,
                path=".config",
                reason="FieldValueForbidden",
            ),
            Rule(
                "!has(self.adopt) || !has(self.streamPrefix)",
                _PREFIX_ADOPT,
                path=".adopt",
                reason="FieldValueForbidden",
            ),
            Rule(
                "!has(self.claim) || !has(self.stream)",
                _STREAM_CLAIM,
                path=".claim",
                reason="FieldValueForbidden",
            ),
            Rule(
                "!has(self.releaseWhen) || self.releaseWhen != 'OwnersFinished'"
                " || (has(self.owners) && self.owners.size() > 0)",
                _NO_OWNERS,
                path=".owners",
                reason="FieldValueRequired",
            ),
            Rule(
                "(has(self.tracking) && self.tracking == 'Observe') || !has(self.owners)"
                " || !self.owners.exists(owner, has(owner.namespace))",
                _FAR_OWNER,
                path=".owners",
                reason="FieldValueForbidden",
            ),
        )
    )

    store_ref: LocalRef = Field(
        description="The StreamStore that holds it, of this namespace. Cannot be changed.",
        json_schema_extra=immutable("the store", _ANOTHER),
    )
    scope: NewNameInStore = Field(
        description="Its scope. Cannot be changed.",
        json_schema_extra=immutable("the scope", _ANOTHER, NEW_NAME_RULE),
    )
    scope_policy: Literal["MustExist", "CreateIfAbsent"] = Field(
        default="MustExist",
        description="CreateIfAbsent makes the scope, and removes one that Sluice made when it is "
        "empty.",
    )
    stream: NewNameInStore | None = Field(
        default=None,
        description="One stream, which Sluice makes. Cannot be changed.",
    )
    stream_prefix: (
        Annotated[NewNameInStore, Field(min_length=LEAST_PREFIX, max_length=150)] | None
    ) = Field(
        default=None,
        description="Every stream whose name begins so, which the application makes itself. "
        "Cannot be changed.",
    )
    claim: Literal["NewOnly", "ExistingAndNew"] | None = Field(
        default=None,
        description="With streamPrefix: only streams made after this resource (NewOnly, which is "
        "what happens when left out), or those that were there before as well.",
    )
    config: StreamConfigSpec | None = Field(
        default=None, description="With stream: how it is made. May be changed."
    )
    owners: Annotated[tuple[Owner, ...], Field(max_length=16)] = Field(
        default=(),
        description="The workloads that need the stream: it is made when the first is there, and "
        "goes with the last. Without owners it lives as long as this resource.",
    )
    tracking: Literal["OwnerReference", "Observe"] = Field(
        default="OwnerReference",
        description="OwnerReference makes the owners own this resource, so Kubernetes deletes it "
        "with the last one. Observe only watches them, and keeps the resource.",
    )
    release_when: Literal["OwnersDeleted", "OwnersFinished"] = Field(
        default="OwnersDeleted",
        description="OwnersFinished also releases the stream when all owners have finished: Jobs, "
        "Pods, Spark and Flink resources, and whatever has a condition Complete, Succeeded, "
        "Finished or Failed.",
    )
    grace_period_seconds: Seconds = Field(
        default=0,
        description="Seconds that the stream outlives its last owner, in which a successor may "
        "take it over.",
    )
    max_age_seconds: Annotated[int, Field(ge=1, le=315_360_000, strict=True)] | None = Field(
        default=None, description="Seconds after which the stream is released in any case."
    )
    on_release: Literal["Delete", "Retain"] = Field(
        default="Delete",
        description="What becomes of the stream when it is released. Retain leaves it to you.",
    )
    adopt: Literal["Never", "IfUnowned"] | None = Field(
        default=None,
        description="With stream: whether one that is there already, and that no other resource "
        "of Sluice has, becomes this resource's (IfUnowned) or is refused (Never, which is what "
        "happens when left out).",
    )
    deletion_timeout_seconds: Annotated[int, Field(ge=10, le=31_536_000, strict=True)] | None = (
        Field(
            default=None,
            description="Seconds after which a deleted resource is let go though its store could "
            "not be reached, and its streams are left behind. For ever when left out.",
        )
    )
    suspend: bool = Field(
        default=False,
        strict=True,
        description="Make, change and release nothing. Deleting the resource works all the same.",
    )

    @field_validator("config", mode="after")
    @classmethod
    def _config_has_a_stream(
        cls, config: StreamConfigSpec | None, info: ValidationInfo
    ) -> StreamConfigSpec | None:
        if config is not None and info.data.get("stream_prefix") is not None:
            raise ValueError(_PREFIX_CONFIG)
        return config

    @model_validator(mode="after")
    def _fields_go_together(self) -> Self:
        if (self.stream is None) == (self.stream_prefix is None):
            raise ValueError(f"exactly one {_WHAT} is needed: stream, streamPrefix")
        if self.stream_prefix is not None and self.adopt is not None:
            raise ValueError(_PREFIX_ADOPT)
        if self.stream is not None and self.claim is not None:
            raise ValueError(_STREAM_CLAIM)
        if self.release_when == "OwnersFinished" and not self.owners:
            raise ValueError(_NO_OWNERS)
        if self.tracking != "Observe" and any(owner.namespace for owner in self.owners):
            raise ValueError(_FAR_OWNER)
        return self


class EphemeralStream(Resource):
    """Streams that live exactly as long as their workload."""

    kind: Literal["EphemeralStream"]
    spec: EphemeralStreamSpec
