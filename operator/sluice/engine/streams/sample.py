"""Make a sample stream, for a first try of Sluice: a scope, a stream, a thousand events."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Final
from uuid import UUID

from sluice.core.values.model import Scaling, StreamConfig, StreamName
from sluice.engine.streams.writing import EventWriter, Routed, patiently
from sluice.errors import InvalidSpec, StoreBusy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sluice.stores.base import Store
    from sluice.stores.writing import SegmentSink

SAMPLE: Final = StreamName(scope="sample", stream="orders")
EVENTS: Final = 1000

_CONFIG: Final = StreamConfig(scaling=Scaling(min_segments=4), tags=("sluice-sample",))
_CUSTOMERS: Final = 50

_WRITER: Final = UUID("6f3b1f52-6a0e-4c0b-9d5c-3f1f6f0c7a11")
"""The writer of all runs. With each segment, the store notes the number of its last event. So a run
goes on where an interrupted run stopped, and a run after a complete run writes nothing."""


def make_sample(store: Store) -> int:
    """Ensure that the sample stream exists and holds all its events. Return their number.

    A store that has just been started may need another minute, so each part is tried again.

    Raises:
        InvalidSpec: there is another stream of this name. It is left as it is.
        TargetSealed: the stream is sealed.
        StoreUnavailable: the store was away for too long.
    """
    patiently(partial(_make_stream, store))
    writer = EventWriter(store, SAMPLE, writer=_WRITER)
    writer.write(_events(store))
    return writer.whole


def _make_stream(store: Store) -> None:
    """Make the stream and its scope. Raise InvalidSpec if there is another stream of this name."""
    # Look first: a user who may not make scopes can still use one that exists.
    if not store.scope_exists(SAMPLE.scope):
        store.create_scope(SAMPLE.scope)
    store.create_stream(SAMPLE, _CONFIG)
    found = store.describe(SAMPLE)
    if found is None:
        raise StoreBusy(f"{SAMPLE} was deleted at this moment")
    there, wanted = (one.model_dump(mode="json", by_alias=True) for one in (found.config, _CONFIG))
    for field, value in wanted.items():
        if there[field] != value:
            is_not = f"{json.dumps(there[field])} in place of {json.dumps(value)}"
            raise _other(field, f"its {field} is {is_not}")
    # Other segments have not noted which events the former ones hold.
    if not all(store.is_original(one.id) for one in found.tail):
        raise _other("segments", "its segments were scaled")


def _other(field: str, difference: str) -> InvalidSpec:
    return InvalidSpec(
        f"there is a stream {SAMPLE} already: {difference}",
        field=field,
        remedy="It is left as it is. Delete it if it is not needed, or do without the sample.",
    )


def _events(store: SegmentSink) -> Iterator[Routed]:
    """Yield the events, the same ones in each run: a customer's orders come in order."""
    for number in range(1, EVENTS + 1):
        customer = f"customer-{number * 7 % _CUSTOMERS:02}"
        order = {"order": number, "customer": customer, "cents": number * 37 % 10_000}
        yield Routed(store.place_of(customer), json.dumps(order).encode())
