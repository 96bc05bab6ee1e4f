"""Define the parts that statuses share: those of all kinds, and those of copies.

Another version of the operator may have written a status. So reading never fails: unknown fields
are skipped, and a field that cannot be read counts as absent. Nothing is lost, since a status is
only a report; the operator finds the facts in the stores and in the cluster. Writing never fails
for length either: texts that are too long are cut.
"""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationError,
)
from pydantic.alias_generators import to_camel

from sluice.api.scalars.texts import Reason, cut

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_HISTORY: Final = 10
"""Attempts that a status remembers."""

MOST_GAPS: Final = 100
"""Gaps that a status lists."""

MOST_TOKEN: Final = 512
"""Characters of the annotation sluice.dev/requestedAt that count."""


def _first(most: int, value: Any) -> Any:
    """Cut a text to its first `most` characters, without dots."""
    return value[:most] if isinstance(value, str) else value


def _last(most: int, value: Any) -> Any:
    """Return the last `most` items of a list."""
    return value[-most:] if isinstance(value, list | tuple) else value


def head(most: int, value: Any) -> Any:
    """Return the first `most` items of a list."""
    return value[:most] if isinstance(value, list | tuple) else value


def _whole_seconds(value: datetime) -> datetime:
    """Convert a time to whole seconds in UTC, which is what Kubernetes will give back."""
    return value.astimezone(UTC).replace(microsecond=0)


Time = Annotated[
    AwareDatetime,
    AfterValidator(_whole_seconds),
    PlainSerializer(lambda value: value.strftime("%Y-%m-%dT%H:%M:%SZ"), return_type=str),
]
"""A point in time, to the second, in UTC."""

Count = Annotated[int, Field(ge=0, le=1 << 62)]
"""A number of things. The bound is one that JSON's numbers hold exactly."""

Number = Annotated[int, Field(ge=0, le=1_000_000_000)]
"""A small number of things."""

ShortText = Annotated[str, Field(max_length=128), BeforeValidator(partial(cut, 128))]
Name = Annotated[str, Field(max_length=253), BeforeValidator(partial(cut, 253))]
Token = Annotated[str, Field(max_length=MOST_TOKEN), BeforeValidator(partial(_first, MOST_TOKEN))]
"""A text that is only compared, by its first `MOST_TOKEN` characters."""
FieldPath = Annotated[str, Field(max_length=512), BeforeValidator(partial(cut, 512))]
Text = Annotated[str, Field(max_length=4096), BeforeValidator(partial(cut, 4096))]
LongText = Annotated[str, Field(max_length=32768), BeforeValidator(partial(cut, 32768))]


class ConditionType(StrEnum):
    """The conditions that Sluice sets. `Reconciling` and `Stalled` are absent unless they hold."""

    READY = "Ready"
    SUCCEEDED = "Succeeded"
    RECONCILING = "Reconciling"
    STALLED = "Stalled"
    SUSPENDED = "Suspended"
    VERIFIED = "Verified"
    RESTORE_VERIFIED = "RestoreVerified"
    DRIFTED = "Drifted"
    HOOKS = "HooksSucceeded"


class StatusModel(BaseModel):
    """A part of a status: camelCase in YAML, unknown fields skipped, immutable."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        defer_build=True,  # see Frozen
        frozen=True,
        validate_by_alias=True,
        validate_by_name=True,
    )

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy. Fields in `update` are checked and cut as those that are read."""
        if not update:
            return super().model_copy(deep=deep)
        return self.model_validate({**dict(self), **update})

    def dump(self) -> dict[str, Any]:
        """Convert it to what Kubernetes takes: camelCase, JSON values, no absent fields."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


class Condition(StatusModel):
    """A condition of a resource, in Kubernetes' sense."""

    type: Annotated[
        str,
        Field(
            min_length=1,
            max_length=64,
            pattern=r"^[A-Za-z]([A-Za-z0-9]*)$",
            description="What the condition is about: Ready, Succeeded, Reconciling, Stalled, "
            "Suspended, Verified, Drifted or HooksSucceeded.",
        ),
    ]
    status: Literal["True", "False", "Unknown"] = Field(description="Whether it holds.")
    reason: Reason = Field(description="Why, in one word of the catalogue of reasons.")
    message: Text = Field(default="", description="Why, in a sentence, and what to do.")
    observed_generation: Count = Field(
        default=0, description="The generation of the resource that the condition is about."
    )
    last_transition_time: Time = Field(description="When `status` last changed.")


class ObjectRef(StatusModel):
    """A reference to an object in the same namespace."""

    model_config = ConfigDict(json_schema_extra={"x-kubernetes-map-type": "atomic"})

    name: Name = Field(description="The object's name.")


class ProgressStatus(StatusModel):
    """How far a copy is, as the operator reads it from the target store."""

    bytes: Count = Field(default=0, description="Bytes in the target store, staged or published.")
    total_bytes: Count = Field(default=0, description="Bytes to copy.")
    size: ShortText = Field(default="", description="The bytes to copy, for a table.")
    events: Count | None = Field(
        default=None,
        description="Events to copy, as the source's store counts them; that number may be too "
        "low. Once the copy is complete, the events that were copied.",
    )
    percent: Annotated[int, Field(ge=0, le=100)] = Field(
        default=0, description="Bytes as a share of the bytes to copy, rounded down."
    )
    summary: ShortText = Field(default="", description="The progress in a few words, for a table.")
    bytes_per_second: Count | None = Field(
        default=None,
        description="Speed, averaged over the last 20 s, or over several lumps where bytes come in "
        "lumps; 0 once none come.",
    )
    rate: ShortText | None = Field(default=None, description="The speed, for a table.")
    eta_seconds: Count | None = Field(
        default=None,
        description="Seconds until the last byte comes at this speed; absent while that is "
        "unknown.",
    )
    time: Time | None = Field(default=None, description="When this was read.")


class Failure(StatusModel):
    """What went wrong the last time."""

    reason: Reason = Field(description="What went wrong, in one word of the catalogue.")
    category: ShortText = Field(
        description="Where the cause is: Spec, Backend, Infrastructure, Scheduling or Integrity."
    )
    message: Text = Field(default="", description="What went wrong, in a sentence with names.")
    field: FieldPath | None = Field(
        default=None, description="The field of the spec that has to be changed, if there is one."
    )
    remedy: Text | None = Field(default=None, description="What to do.")
    attempt: Number | None = Field(default=None, description="The attempt that failed, from 1.")
    time: Time | None = Field(default=None, description="When it failed.")


class VerificationStatus(StatusModel):
    """Which bytes were compared before they were published."""

    digest: ShortText = Field(description="The SHA-256 over the chunks of all segments.")
    bytes: Count = Field(default=0, description="Bytes compared.")
    events: Count | None = Field(
        default=None,
        description="Events in these bytes, counted one by one; without verification, as the "
        "source's store counts them.",
    )
    segments: Count = Field(default=0, description="Segments compared.")
    time: Time | None = Field(default=None, description="When the comparison was done.")


class GapStatus(StatusModel):
    """Bytes that a source lost before they were read, and that the copy lacks."""

    source: Number = Field(
        default=0, description="The index of the stream among the sources, from 0."
    )
    segment_id: Count = Field(alias="segmentID", description="The segment of the source.")
    from_: Count = Field(alias="from", description="The offset of the first lost byte.")
    to: Count | None = Field(
        default=None,
        description="The offset after the last lost byte. Absent if it is unknown how many bytes "
        "were lost, perhaps none.",
    )


Gaps = Annotated[
    tuple[GapStatus, ...],
    Field(max_length=MOST_GAPS),
    BeforeValidator(partial(head, MOST_GAPS)),
]
"""The first gaps of a copy or a run."""


class Attempt(StatusModel):
    """One attempt: one Job."""

    attempt: Number = Field(description="The attempt's number, from 1.")
    job: Name = Field(description="The Job's name.")
    start_time: Time | None = Field(default=None, description="When it began.")
    end_time: Time | None = Field(default=None, description="When it ended.")
    outcome: ShortText | None = Field(
        default=None, description="How it ended, such as Succeeded, Failed or Suspended."
    )
    reason: ShortText | None = Field(default=None, description="Why it ended so, in one word.")


class ResourceStatus(StatusModel):
    """The fields that every status has."""

    observed_generation: Annotated[int, Field(ge=-1, le=1 << 62)] = Field(
        default=-1,
        description="The generation of the resource that this status is about; -1 before any.",
    )
    conditions: Annotated[tuple[Condition, ...], Field(max_length=16)] = Field(
        default=(),
        description="The conditions of the resource, one entry per type.",
        json_schema_extra={
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
        },
    )

    @classmethod
    def read(cls, written: Mapping[str, Any] | None) -> Self:
        """Read a resource's `status`. Fields that cannot be read count as absent."""
        fields = dict(written or {})
        try:
            return cls.model_validate(fields)
        except ValidationError as error:
            for problem in error.errors(include_url=False, include_input=False):
                fields.pop(str(problem["loc"][0]), None)
        return cls.model_validate(fields)

    def condition(self, kind: ConditionType | str) -> Condition | None:
        """Return the condition of a type, or None if it is absent."""
        return next((found for found in self.conditions if found.type == kind), None)


class CopyingStatus(ResourceStatus):
    """The progress and the result of a copy, of one stream or of many."""

    copy_id: ShortText | None = Field(
        default=None,
        alias="copyID",
        description="The identity of the copy. It names all that the copy keeps in the target "
        "store.",
    )
    source: Text | None = Field(
        default=None,
        description="The store and the stream or the scope that is copied, for a table. Of several "
        "streams, the first and how many follow.",
    )
    target: Text | None = Field(
        default=None,
        description="The store and the stream or the scope that is copied to, or the path of the "
        "archive or the archives, for a table.",
    )
    plan_ref: ObjectRef | None = Field(
        default=None, description="The ConfigMap that holds the plan."
    )
    plan_hash: ShortText | None = Field(default=None, description="The SHA-256 of the plan.")
    plan_digest: ShortText | None = Field(
        default=None,
        description="The SHA-256 of the plan and the addresses of its stores. The operator does "
        "not trust a ConfigMap with another plan.",
    )
    job_ref: ObjectRef | None = Field(
        default=None,
        description="The Job of the attempt that runs, or ran last, in driverNamespace if that is "
        "given. Absent once the copy has succeeded and its Jobs were deleted.",
    )
    driver_namespace: Name | None = Field(
        default=None,
        description="The StreamStores' namespace, if drivers run there and not in the namespace of "
        "the copy. Their Jobs are there.",
    )
    progress: ProgressStatus | None = Field(default=None, description="How far the copy is.")
    attempts: Number = Field(default=0, description="How many attempts have begun.")
    failures: Number = Field(
        default=0, description="How many attempts have failed since the copy last made progress."
    )
    retry_time: Time | None = Field(default=None, description="When the next attempt begins.")
    last_failure: Failure | None = Field(default=None, description="What went wrong the last time.")
    last_handled_requested_at: Token | None = Field(
        default=None,
        description="The value of the annotation sluice.dev/requestedAt that the operator acted on "
        "last.",
    )
    start_time: Time | None = Field(default=None, description="When the first attempt began.")
    completion_time: Time | None = Field(
        default=None, description="When the copy was done or had failed."
    )
    duration: ShortText | None = Field(
        default=None,
        description="How long the copy took, from the first attempt until it was done, for a "
        "table.",
    )
    history: Annotated[
        tuple[Attempt, ...],
        Field(max_length=MOST_HISTORY),
        BeforeValidator(partial(_last, MOST_HISTORY)),
    ] = Field(default=(), description="The last attempts, oldest first.")


class HookStatus(StatusModel):
    """How a hook stands: the Job that runs, or ran last."""

    number: Number = Field(description="How many Jobs were made for this hook, each for a run.")
    job: Name = Field(description="The Job's name.")
    state: Literal["Pending", "Running", "Succeeded", "Failed"] | None = Field(
        default=None,
        description="How far it is: Pending, Running, Succeeded or Failed. Absent if the hook is "
        "due again, with another Job.",
    )
    start_time: Time | None = Field(default=None, description="When the Job was made.")
    end_time: Time | None = Field(default=None, description="When it succeeded or failed.")
    message: Text | None = Field(default=None, description="Why it failed.")


class HooksStatus(StatusModel):
    """How the hooks stand."""

    before: HookStatus | None = Field(default=None, description="The hook before the copy.")
    after: HookStatus | None = Field(default=None, description="The hook after the copy.")


class HookedStatus(CopyingStatus):
    """The status of a copy that may have hooks."""

    hooks: HooksStatus | None = Field(
        default=None, description="How the hooks of spec.hooks stand, once one was due."
    )
