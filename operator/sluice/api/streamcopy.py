"""StreamCopy: one stream, copied exactly once."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, Self

from pydantic import ConfigDict, Field, ValidationInfo, field_validator, model_validator

from sluice.api.common import ApiModel, LocalRef, Resource, ScopeName, StoreName, StreamNameText
from sluice.api.quantities import Bytes, MilliCpu
from sluice.api.ranges import MOST_RANGES, Range
from sluice.api.rules import Rule, exactly_one, frozen, immutable, rules

DEFAULT_BACKOFF_LIMIT: Final = 6
DEFAULT_PROFILE: Final = "default"

MOST_SOURCES: Final = 64

_WHAT = "origin of the bytes"
_ANOTHER = "make another copy, under another name"
_ONTO_ITSELF = (
    "the target is the source: a stream cannot be copied onto itself, "
    "name another stream, scope or store"
)
_NO_EXECUTORS = "there are no executor pods to describe: remove executor, or the 0 from executors"

BackoffLimit = Annotated[int, Field(ge=0, le=100, strict=True)]
DeadlineSeconds = Annotated[int, Field(ge=60, le=31_536_000, strict=True)]
Executors = Annotated[int, Field(ge=0, le=256, strict=True)]


class Source(ApiModel):
    """The stream to copy: from its oldest byte to its end when the copy begins, or parts of it."""

    store_ref: LocalRef = Field(description="The StreamStore that holds it, of this namespace.")
    scope: ScopeName = Field(description="Its scope.")
    stream: StreamNameText = Field(description="Its name.")
    ranges: Annotated[tuple[Range, ...], Field(max_length=MOST_RANGES)] = Field(
        default=(),
        description="What of it is copied, one range after the other; from head to tail when left "
        "out.",
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )


class Target(ApiModel):
    """The stream to make, or to append to."""

    store_ref: LocalRef = Field(description="The StreamStore to make it in, of this namespace.")
    scope: ScopeName = Field(description="Its scope, which has to exist.")
    stream: StreamNameText = Field(description="Its name.")
    on_exists: Literal["Fail", "Append"] = Field(
        default="Fail",
        description="What to do if the stream exists and is not this copy's own: refuse it, or "
        "append to it, once.",
        json_schema_extra=frozen(),
    )
    seal_when_done: bool = Field(
        default=False,
        strict=True,
        description="Seal it once it is whole: it takes no more events, and cannot be opened "
        "again.",
        json_schema_extra=frozen(),
    )


class LimitsSpec(ApiModel):
    """What the copy may use. May be changed while it runs."""

    bytes_per_second: Annotated[int, Bytes("1Ki", "1Ti")] | None = Field(
        default=None,
        description="Most bytes per second, over all tasks; no limit when left out. 1Ki to 1Ti.",
    )
    in_flight_bytes: Annotated[int, Bytes("1Mi", "1Gi")] | None = Field(
        default=None,
        description="Most bytes sent to the target store and not confirmed, over all tasks. "
        "1Mi to 1Gi; Sluice chooses when left out.",
    )


class ResourcesSpec(ApiModel):
    """The size of a pod. The profile bounds what may be asked for, and a JVM what is enough."""

    cpu: Annotated[int, MilliCpu("100m", "256")] | None = Field(
        default=None,
        description='Processors that the pod asks for: 2, "1.5" or 500m. 100m to 256.',
    )
    memory: int | None = None


class DriverResources(ResourcesSpec):
    """The size of a driver."""

    memory: Annotated[int, Bytes("512Mi", "1Ti")] | None = Field(
        default=None,
        description="Memory that the pod asks for and may use at most. 512Mi to 1Ti.",
    )


class ExecutorResources(ResourcesSpec):
    """The size of an executor."""

    memory: Annotated[int, Bytes("768Mi", "1Ti")] | None = Field(
        default=None,
        description="Memory that the pod asks for and may use at most. 768Mi to 1Ti.",
    )


class DriverSpec(ApiModel):
    """The driver pod of a copy."""

    resources: DriverResources = Field(
        default=DriverResources(), description="Its size; what is left out comes from the profile."
    )


class ExecutorSpec(ApiModel):
    """The executor pods of a copy."""

    resources: ExecutorResources = Field(
        default=ExecutorResources(), description="Their size; what is left out is the profile's."
    )


class RuntimeSpec(ApiModel):
    """What the copy runs on. Tenants choose a profile and sizes, never a pod."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            Rule(
                "!has(self.executor) || !has(self.executors) || self.executors != 0",
                _NO_EXECUTORS,
                path=".executor",
                reason="FieldValueForbidden",
            )
        )
    )

    profile: StoreName = Field(
        default=DEFAULT_PROFILE,
        description="One of the profiles that the administrator offers (Helm value `profiles`).",
    )
    executors: Executors | None = Field(
        default=None,
        description="Pods that copy beside the driver. With 0 the driver pod does all the work. "
        "Sluice chooses by the source's size when left out.",
    )
    driver: DriverSpec = Field(default=DriverSpec(), description="The driver pod.")
    executor: ExecutorSpec | None = Field(
        default=None, description="The executor pods. Not allowed where executors is 0."
    )

    @field_validator("executor", mode="after")
    @classmethod
    def _executor_is_used(
        cls, executor: ExecutorSpec | None, info: ValidationInfo
    ) -> ExecutorSpec | None:
        if executor is not None and info.data.get("executors") == 0:
            raise ValueError(_NO_EXECUTORS)
        return executor


_SAME = (
    "{0}.storeRef.name != self.target.storeRef.name"
    " || {0}.scope != self.target.scope || {0}.stream != self.target.stream"
)


class StreamCopySpec(ApiModel):
    """What is copied where."""

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
                "has(self.source) == has(oldSelf.source)",
                f"the source cannot be changed: {_ANOTHER}",
                path=".source",
                reason="FieldValueForbidden",
            ),
        )
    )

    source: Source | None = Field(
        default=None,
        description="The stream to copy. Cannot be changed.",
        json_schema_extra=immutable("the source", _ANOTHER),
    )
    sources: Annotated[tuple[Source, ...], Field(min_length=1, max_length=MOST_SOURCES)] | None = (
        Field(
            default=None,
            description="Streams to copy into one, one after the other in this order. "
            "Cannot be changed.",
            json_schema_extra={
                "x-kubernetes-list-type": "atomic",
                **immutable("the sources", _ANOTHER),
            },
        )
    )
    target: Target = Field(
        description="The stream to make. Cannot be changed.",
        json_schema_extra=immutable("the target", _ANOTHER),
    )
    suspend: bool = Field(
        default=False,
        strict=True,
        description="Plan, but move no byte. A running copy stops and keeps what it has staged.",
    )
    limits: LimitsSpec = Field(
        default=LimitsSpec(),
        description="What the copy may use. May be changed while the copy runs.",
    )
    backoff_limit: BackoffLimit = Field(
        default=DEFAULT_BACKOFF_LIMIT,
        description="Attempts that may fail one after the other without any progress; "
        "one more and the copy has failed.",
    )
    active_deadline_seconds: DeadlineSeconds | None = Field(
        default=None,
        description="Seconds from the first attempt after which a copy that is not done has "
        "failed; no deadline when left out.",
    )
    runtime: RuntimeSpec = Field(default=RuntimeSpec(), description="What the copy runs on.")

    @field_validator("target", mode="after")
    @classmethod
    def _target_is_not_source(cls, target: Target, info: ValidationInfo) -> Target:
        given = (info.data.get("source"), *(info.data.get("sources") or ()))
        place = (target.store_ref, target.scope, target.stream)
        if any(one and (one.store_ref, one.scope, one.stream) == place for one in given):
            raise ValueError(_ONTO_ITSELF)
        return target

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.source is None) == (self.sources is None):
            raise ValueError(f"exactly one {_WHAT} is needed: source, sources")
        return self

    @property
    def origins(self) -> tuple[tuple[str, Source], ...]:
        """What is copied, in order, each with the field that names it."""
        if self.source is not None:
            return (("spec.source", self.source),)
        return tuple((f"spec.sources[{i}]", one) for i, one in enumerate(self.sources or ()))

    def identity(self) -> dict[str, Any]:
        """The part of the spec that makes it this copy and no other.

        Defaults are left out, so that a field that a later version adds changes no copy's identity.
        """
        parts = {"source", "sources", "target"}
        return self.model_dump(mode="json", by_alias=True, include=parts, exclude_defaults=True)


class StreamCopy(Resource):
    """One stream, copied exactly once."""

    kind: Literal["StreamCopy"]
    spec: StreamCopySpec
