"""Define the fields that say how a copy runs: limits, pods and attempts.

They are not part of a copy's identity, so users may change them as long as the copy exists.
"""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import ConfigDict, Field, ValidationInfo, field_validator

from sluice.api.fields.common import ApiModel, StoreName
from sluice.api.rules import Rule, rules
from sluice.api.scalars.quantities import Bytes, MilliCpu

DEFAULT_BACKOFF_LIMIT: Final = 6
DEFAULT_PROFILE: Final = "default"

_NO_LIMIT = "cpuLimit goes with cpu, and is at least as much: give both"
_NO_EXECUTORS = "there are no executor pods to describe: remove executor, or the 0 from executors"

Executors = Annotated[int, Field(ge=0, le=256, strict=True)]


class LimitsSpec(ApiModel):
    """The limits of the copy. They may be changed while it runs."""

    bytes_per_second: Annotated[int, Bytes("1Ki", "1Ti")] | None = Field(
        default=None,
        description="Maximum bytes per second over all tasks; no limit when left out. 1Ki to 1Ti.",
    )
    in_flight_bytes: Annotated[int, Bytes("1Mi", "1Gi")] | None = Field(
        default=None,
        description="Maximum bytes that are sent to the target store and not confirmed yet, over "
        "all tasks. 1Mi to 1Gi; Sluice chooses when left out.",
    )


class ResourcesSpec(ApiModel):
    """The size of a pod. The profile limits it; the least memory is what a JVM needs."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            Rule(
                "!has(self.cpuLimit) || (has(self.cpu) && quantity(string(self.cpuLimit))"
                ".compareTo(quantity(string(self.cpu))) >= 0)",
                _NO_LIMIT,
                path=".cpuLimit",
            )
        )
    )

    cpu: Annotated[int, MilliCpu("100m", "256")] | None = Field(
        default=None,
        description='Processors that the pod requests: 2, "1.5" or 500m. 100m to 256.',
    )
    cpu_limit: Annotated[int, MilliCpu("100m", "256")] | None = Field(
        default=None,
        description="Processors that the pod may use at most, at least cpu. A namespace whose "
        "ResourceQuota has limits.cpu asks for it. 100m to 256; the profile decides when left out, "
        "by default without a limit.",
    )
    memory: int | None = None

    @field_validator("cpu_limit", mode="after")
    @classmethod
    def _limit_fits(cls, limit: int | None, info: ValidationInfo) -> int | None:
        if limit is not None and limit < (info.data.get("cpu") or limit + 1):
            raise ValueError(_NO_LIMIT)
        return limit


class DriverResources(ResourcesSpec):
    """The size of a driver."""

    memory: Annotated[int, Bytes("512Mi", "1Ti")] | None = Field(
        default=None,
        description="Memory that the pod requests, and its limit. 512Mi to 1Ti.",
    )


class ExecutorResources(ResourcesSpec):
    """The size of an executor."""

    memory: Annotated[int, Bytes("768Mi", "1Ti")] | None = Field(
        default=None,
        description="Memory that the pod requests, and its limit. 768Mi to 1Ti.",
    )


class DriverSpec(ApiModel):
    """The driver pod of a copy."""

    resources: DriverResources = Field(
        default=DriverResources(),
        description="The pod's size. The profile gives omitted values.",
    )


class ExecutorSpec(ApiModel):
    """The executor pods of a copy."""

    resources: ExecutorResources = Field(
        default=ExecutorResources(),
        description="The size of each pod. The profile gives omitted values.",
    )


class RuntimeSpec(ApiModel):
    """The pods that the copy runs in. Tenants choose a profile and sizes, but define no pods."""

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


Suspend = Annotated[
    bool,
    Field(
        strict=True,
        description="Plan the copy, but move no bytes. A running copy stops, and keeps what it has "
        "staged.",
    ),
]

Limits = Annotated[
    LimitsSpec,
    Field(description="The limits of the copy. They may be changed while it runs."),
]

BackoffLimit = Annotated[
    int,
    Field(
        ge=0,
        le=100,
        strict=True,
        description="How many attempts in a row may fail without any progress. With one more the "
        "copy has failed.",
    ),
]

DeadlineSeconds = Annotated[
    Annotated[int, Field(ge=60, le=31_536_000, strict=True)] | None,
    Field(
        description="Deadline, in seconds from the first attempt. A copy that is not done by then "
        "has failed. No deadline when left out.",
    ),
]

TtlSeconds = Annotated[
    Annotated[int, Field(ge=0, le=31_536_000, strict=True)] | None,
    Field(
        description="Seconds after which the operator deletes this resource once the copy has "
        "succeeded, with its Jobs and ConfigMaps. The target stays as it is. A copy that failed is "
        "not deleted. When left out, the resource stays until you delete it. Leave it out where "
        "Git holds the resource, which would be applied again.",
    ),
]

Runtime = Annotated[RuntimeSpec, Field(description="The pods that the copy runs in.")]
