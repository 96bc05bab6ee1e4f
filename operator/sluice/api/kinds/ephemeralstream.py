"""Define EphemeralStream: streams that live exactly as long as their workload."""

from __future__ import annotations

from typing import Annotated, Final, Literal, Self

from pydantic import ConfigDict, Field, ValidationInfo, field_validator, model_validator

from sluice.api.fields.common import (
    NEW_NAME_RULE,
    ApiModel,
    NewNameInStore,
    Resource,
    StoreName,
    StoreRef,
)
from sluice.api.rules import Rule, exactly_one, immutable, one_of, rules
from sluice.api.scalars.quantities import Bytes

_WHAT = "thing to own"
LEAST_PREFIX: Final = 4
"""Least length of a prefix, in characters: a shorter one would claim streams of others."""

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
        default="Fixed", description="Whether the number of segments is fixed or follows the load."
    )
    min_segments: Annotated[int, Field(ge=1, le=1000, strict=True)] = Field(
        default=1, description="How many segments the stream has at first, and at least."
    )
    target_rate: Annotated[int, Field(ge=1, le=1_000_000_000, strict=True)] | None = Field(
        default=None,
        description="The load that one segment should take: events per second, or KiB per second "
        "for ByBytesPerSecond.",
    )
    scale_factor: Annotated[int, Field(ge=2, le=16, strict=True)] | None = Field(
        default=None, description="Into how many segments a busy segment is split."
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
    """Which events the store drops by itself."""

    model_config = ConfigDict(json_schema_extra=one_of("kind of retention", "seconds", "bytes"))

    seconds: Annotated[int, Field(ge=1, le=315_360_000, strict=True)] | None = Field(
        default=None, description="The store drops events that are older than this."
    )
    bytes: Annotated[int, Bytes("1Mi", "1Ti")] | None = Field(
        default=None,
        description="The store drops the oldest events beyond this size. 1Mi to 1Ti.",
    )

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if (self.seconds is None) == (self.bytes is None):
            raise ValueError("exactly one kind of retention is needed: seconds, bytes")
        return self


class StreamConfigSpec(ApiModel):
    """The stream's configuration in the store."""

    scaling: ScalingSpec = Field(
        default=ScalingSpec(), description="How many segments the stream has."
    )
    retention: RetentionSpec | None = Field(
        default=None,
        description="Which events the store drops by itself. It keeps all when left out.",
    )
    tags: Annotated[tuple[Tag, ...], Field(max_length=16)] = Field(
        default=(),
        description="Tags of the stream, beside those that Sluice sets.",
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
    ] = Field(description="The owner's API version, such as apps/v1.")
    kind: Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[A-Z][A-Za-z0-9]*$")] = (
        Field(description="The owner's kind, such as Deployment. Any kind is allowed.")
    )
    name: Annotated[
        str, Field(min_length=1, max_length=253, pattern=r"^[a-z0-9]([a-z0-9.:-]*[a-z0-9])?$")
    ] = Field(description="The owner's name.")
    namespace: StoreName | None = Field(
        default=None,
        description="The owner's namespace, if it is another one. That needs tracking: Observe, "
        "and the access of the StreamStore has to allow it.",
    )


class EphemeralStreamSpec(ApiModel):
    """The streams, the workloads that own them, and what happens when these are gone."""

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

    store_ref: StoreRef = Field(
        description="The StreamStore of the streams. Cannot be changed.",
        json_schema_extra=immutable("the store", _ANOTHER),
    )
    scope: NewNameInStore = Field(
        description="The scope of the streams. Cannot be changed.",
        json_schema_extra=immutable("the scope", _ANOTHER, NEW_NAME_RULE),
    )
    scope_policy: Literal["MustExist", "CreateIfAbsent"] = Field(
        default="MustExist",
        description="What to do if the scope does not exist. CreateIfAbsent creates it. It also "
        "deletes the scope when that is empty, if Sluice created it.",
    )
    stream: NewNameInStore | None = Field(
        default=None,
        description="The name of one stream, which Sluice creates. Cannot be changed.",
    )
    stream_prefix: (
        Annotated[NewNameInStore, Field(min_length=LEAST_PREFIX, max_length=150)] | None
    ) = Field(
        default=None,
        description="All streams whose names begin like this. The application creates them itself. "
        "Cannot be changed.",
    )
    claim: Literal["NewOnly", "ExistingAndNew"] | None = Field(
        default=None,
        description="With streamPrefix: whether only streams that are created after this resource "
        "belong to it (NewOnly), or earlier ones as well. NewOnly when left out.",
    )
    config: StreamConfigSpec | None = Field(
        default=None, description="With stream: its configuration. May be changed."
    )
    owners: Annotated[tuple[Owner, ...], Field(max_length=16)] = Field(
        default=(),
        description="The workloads that need the stream. It is created when the first owner "
        "exists, and released when the last is gone. Without owners it lives as long as this "
        "resource.",
    )
    tracking: Literal["OwnerReference", "Observe"] = Field(
        default="OwnerReference",
        description="OwnerReference makes the owners own this resource, so Kubernetes deletes it "
        "with the last owner. Observe only watches the owners, and keeps the resource.",
    )
    release_when: Literal["OwnersDeleted", "OwnersFinished"] = Field(
        default="OwnersDeleted",
        description="OwnersFinished also releases the stream when all owners have finished: Jobs, "
        "Pods, Spark and Flink resources, and other resources with a condition Complete, "
        "Succeeded, Finished or Failed.",
    )
    grace_period_seconds: Seconds = Field(
        default=0,
        description="How many seconds the stream outlives its last owner. In that time another "
        "owner may take it over.",
    )
    max_age_seconds: Annotated[int, Field(ge=1, le=315_360_000, strict=True)] | None = Field(
        default=None,
        description="The stream is released in any case when this resource is so many seconds old.",
    )
    on_release: Literal["Delete", "Retain"] = Field(
        default="Delete",
        description="What happens to the stream when it is released. Retain leaves it to you.",
    )
    adopt: Literal["Never", "IfUnowned"] | None = Field(
        default=None,
        description="With stream: what to do if it exists already. IfUnowned takes it over if no "
        "other resource of Sluice owns it, Never refuses it. Never when left out.",
    )
    deletion_timeout_seconds: Annotated[int, Field(ge=10, le=31_536_000, strict=True)] | None = (
        Field(
            default=None,
            description="How many seconds the deletion of this resource waits for a store that "
            "cannot be reached. Then the resource is removed, and its streams are left behind. It "
            "waits for ever when left out.",
        )
    )
    suspend: bool = Field(
        default=False,
        strict=True,
        description="Create, change and release nothing. The resource can be deleted all the same.",
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
