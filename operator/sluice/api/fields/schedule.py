"""Define when runs of archives begin, and which runs are kept."""

from __future__ import annotations

from typing import Annotated, Final, Self

from pydantic import ConfigDict, Field, model_validator

from sluice.api.fields.common import ApiModel
from sluice.api.rules import Rule, rules
from sluice.api.scalars.cron import Cron, TimeZone

_HOURS: Final = {"h": 1, "d": 24}
_NO_RULE: Final = "retention keeps something: give keepLast, keepWithin or both"


class Schedule(ApiModel):
    """When runs begin."""

    cron: Cron = Field(
        description="Minute, hour, day of the month, month and day of the week, such as "
        '"0 3 * * *"; or @hourly, @daily, @weekly, @monthly or @yearly.'
    )
    time_zone: TimeZone = Field(
        default="Etc/UTC",
        description="The time zone of cron, such as Europe/Berlin. An hour that the clocks skip or "
        "repeat is treated as Debian's cron does.",
    )
    starting_deadline_seconds: Annotated[int, Field(ge=10, le=31_536_000, strict=True)] | None = (
        Field(
            default=None,
            description="How many seconds after its time a run may still begin. Later than that it "
            "is skipped. When this is left out, the last run that was missed is made however late "
            "it is.",
        )
    )


class RunRetentionSpec(ApiModel):
    """Which runs are kept. A run is kept if any of the rules keeps it."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            Rule("has(self.keepLast) || has(self.keepWithin)", _NO_RULE, path=".keepLast")
        )
    )

    keep_last: Annotated[int, Field(ge=1, le=10_000, strict=True)] | None = Field(
        default=None, description="How many of the last runs are kept."
    )
    keep_within: Annotated[str, Field(max_length=6, pattern=r"^[1-9][0-9]{0,4}[hd]$")] | None = (
        Field(
            default=None,
            description="How long runs are kept, in hours or days: 12h, 30d.",
        )
    )

    @model_validator(mode="after")
    def _keeps_something(self) -> Self:
        if self.keep_last is None and self.keep_within is None:
            raise ValueError(_NO_RULE)
        return self

    @property
    def seconds(self) -> int | None:
        """How many seconds runs are kept by keepWithin."""
        if self.keep_within is None:
            return None
        return int(self.keep_within[:-1]) * _HOURS[self.keep_within[-1]] * 3600
