"""Define the fields that name a copy's hooks: Jobs of a user's, before and after the bytes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from sluice.api.fields.common import ApiModel

CronJobName = Annotated[
    str,
    Field(
        min_length=1,
        max_length=52,
        pattern=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?([.][a-z0-9]([a-z0-9-]*[a-z0-9])?)*$",
    ),
]
"""The name of a CronJob, which Kubernetes keeps shorter than other names."""


class CronJobRef(ApiModel):
    """A reference to a CronJob in the same namespace."""

    model_config = ConfigDict(json_schema_extra={"x-kubernetes-map-type": "atomic"})

    name: CronJobName = Field(description="The object's name.")


class HookSpec(ApiModel):
    """A Job that the operator makes from a CronJob's template, once for each run of the copy.

    The CronJob needs the annotation sluice.dev/hook: "true", by which its author agrees.
    """

    cron_job_ref: CronJobRef = Field(
        description="The CronJob, in this namespace. It needs the annotation "
        'sluice.dev/hook: "true", and is suspended if only hooks use it.'
    )
    timeout_seconds: Annotated[int, Field(ge=1, le=86_400, strict=True)] = Field(
        default=600,
        description="Seconds that the Job may take, in place of the template's "
        "activeDeadlineSeconds.",
    )
    backoff_limit: Annotated[int, Field(ge=0, le=20, strict=True)] = Field(
        default=2,
        description="How many pods of the Job may fail, in place of the template's backoffLimit. "
        "With one more the hook has failed.",
    )
    on_failure: Literal["Fail", "Continue"] = Field(
        default="Fail",
        description="What happens if the Job fails or takes too long. Fail stalls the copy. "
        "Continue goes on, and the condition HooksSucceeded is False.",
    )


class HooksSpec(ApiModel):
    """Jobs that run before the first byte is copied, and once the copy is complete."""

    before: HookSpec | None = Field(
        default=None,
        description="Runs once before each run of the copy, and has to succeed. The end of the "
        "source is read afterwards, so the copy has all that was written before the Job ended.",
    )
    after: HookSpec | None = Field(
        default=None,
        description="Runs once when everything is copied and can be read, before the copy is "
        "Ready. A copy that failed, or copied only some of its streams, does not run it.",
    )


Hooks = Annotated[
    HooksSpec,
    Field(description="Jobs of yours before and after the copy. They may be changed."),
]
