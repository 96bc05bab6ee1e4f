"""StreamCopy: one stream, copied exactly once."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from sluice.api.common import ApiModel, Bytes, LocalRef, Resource, ScopeName, StreamNameText


class Source(ApiModel):
    """The stream to copy, from its oldest byte to its end when the copy begins."""

    store_ref: LocalRef = Field(description="The StreamStore that holds it.")
    scope: ScopeName = Field(description="Its scope.")
    stream: StreamNameText = Field(description="Its name.")


class Target(ApiModel):
    """The stream to make."""

    store_ref: LocalRef = Field(description="The StreamStore to make it in.")
    scope: ScopeName = Field(description="Its scope, which has to exist.")
    stream: StreamNameText = Field(description="Its name.")
    on_exists: Literal["Fail"] = Field(
        default="Fail", description="What to do if the stream exists and is not this copy's own."
    )


class LimitsSpec(ApiModel):
    """What the copy may use. May be changed while it runs."""

    bytes_per_second: Bytes | None = Field(
        default=None, ge=1 << 10, description="Most bytes per second, over all tasks."
    )
    in_flight_bytes: Bytes | None = Field(
        default=None,
        ge=1 << 20,
        le=1 << 30,
        description="Most bytes sent to the target store and not confirmed, over all tasks.",
    )


class StreamCopySpec(ApiModel):
    """What is copied where."""

    source: Source = Field(description="The stream to copy.")
    target: Target = Field(description="The stream to make.")
    suspend: bool = Field(default=False, strict=True, description="Plan, but move no byte.")
    limits: LimitsSpec = Field(default=LimitsSpec(), description="What the copy may use.")

    def identity(self) -> dict[str, Any]:
        """The part of the spec that makes it this copy and no other.

        Defaults are left out, so that a field that a later version adds changes no copy's identity.
        """
        return self.model_dump(
            mode="json", by_alias=True, include={"source", "target"}, exclude_defaults=True
        )


class StreamCopy(Resource):
    """One stream, copied exactly once."""

    kind: Literal["StreamCopy"]
    spec: StreamCopySpec
