"""The resource, its status, and the record that makes a kind of both."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field

from sluice.api.fields.common import InStore, Resource
from sluice.api.registry import KindSpec, Lifecycle, PrinterColumn
from sluice.api.status.common import ConditionType, Number, ResourceStatus


class HeartbeatSpec(InStore):
    """The spec that a user writes."""

    period_milliseconds: int = Field(
        default=200, ge=100, le=10_000, description="Milliseconds between two beats."
    )


class Heartbeat(Resource):
    """A resource that counts beats as long as it exists."""

    kind: Literal["Heartbeat"]
    spec: HeartbeatSpec


class HeartbeatStatus(ResourceStatus):
    """The number of beats so far."""

    beats: Number = Field(default=0, description="Beats so far.")


HEARTBEAT: Final = KindSpec(
    model=Heartbeat,
    status=HeartbeatStatus,
    plural="heartbeats",
    short="hb",
    lifecycle=Lifecycle.CONTINUOUS,
    finalizer="heart",
    columns=(
        PrinterColumn("Ready", '.status.conditions[?(@.type=="Ready")].status'),
        PrinterColumn("Beats", ".status.beats", "integer"),
    ),
    conditions={ConditionType.READY: "It beats."},
)
