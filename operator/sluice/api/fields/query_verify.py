"""Define when the results of a query are computed anew and compared with its sinks."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from sluice.api.fields.common import ApiModel
from sluice.api.fields.schedule import Schedule


class QueryVerifySpec(ApiModel):
    """When results are verified, and how long that may take."""

    schedule: Schedule | None = Field(
        default=None,
        description="When verifications begin. One begins in any case when a query with mode: Once "
        "is done, and for each new value of the annotation sluice.dev/verifyRequestedAt.",
    )
    timeout_seconds: Annotated[int, Field(ge=60, le=604_800, strict=True)] = Field(
        default=3600,
        description="Seconds after which a verification ends without a result. It reads again all "
        "that the version of the query has read.",
    )
