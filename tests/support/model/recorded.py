"""Worlds and archives of earlier versions, recorded in files under `tests/recorded`."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from sluice.core.values.model import Segment, StreamConfig, StreamName, TransactionState
from support.model.memory_objects import MemoryObjects
from support.model.world import ModelSegment, ModelStream, ModelTransaction, World

if TYPE_CHECKING:
    from collections.abc import Iterable

RECORDED: Final = Path(__file__).parents[2] / "recorded"


def recorded(name: str) -> dict[str, Any]:
    """Read a file by its name, such as `v1/plan-stream`."""
    found: dict[str, Any] = json.loads((RECORDED / f"{name}.json").read_text())
    return found


def world_of(body: dict[str, Any]) -> World:
    """Make a world from its recorded form."""
    world = World()
    world.scopes = set(body["scopes"])
    world.time, world.opened = body["time"], body["opened"]
    world.merged = set(body["merged"])
    world.numbers.update({_name(name): number for name, number in body["numbers"].items()})
    world.streams = {_name(name): _stream(entry) for name, entry in body["streams"].items()}
    world.segments = {
        name: ModelSegment(
            data=bytearray(base64.b64decode(entry["data"])),
            start=entry["start"],
            sealed=entry["sealed"],
            attributes={
                UUID(key): value for key, value in (entry["attributes"] | entry["writers"]).items()
            },
        )
        for name, entry in body["segments"].items()
    }
    return world


def objects_of(body: dict[str, str]) -> MemoryObjects:
    """Make an object store from its recorded form."""
    objects = MemoryObjects()
    for name, data in body.items():
        objects.put(name, base64.b64decode(data))
    return objects


def _stream(entry: dict[str, Any]) -> ModelStream:
    stream = ModelStream(
        config=StreamConfig.model_validate(entry["config"]),
        segments=_segments(entry["segments"]),
        sealed=entry["sealed"],
        epoch=entry["epoch"],
        layout=entry["layout"],
        made=[_segments(made) for made in entry["made"]],
        ever=[_segments(made) for made in entry["ever"]],
    )
    for key, one in entry["transactions"].items():
        stream.transactions[key] = ModelTransaction(
            key=one["key"],
            layout=one["layout"],
            segments=_segments(one["segments"]),
            state=TransactionState(one["state"]),
        )
    return stream


def _segments(entries: Iterable[Any]) -> tuple[Segment, ...]:
    return tuple(Segment.model_validate(entry) for entry in entries)


def _name(text: str) -> StreamName:
    scope, _, stream = text.partition("/")
    return StreamName(scope=scope, stream=stream)
