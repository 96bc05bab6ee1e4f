"""A store in memory that holds the data of one copy, for simulations."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from sluice.core.scope.progress import Progress
from sluice.core.values.model import StoreAddress
from sluice.core.values.positions import MappedSegment, MappedSource, PositionMap
from sluice.core.workloads.answers import Answer, Complete, Planned
from sluice.errors import StoreUnavailable, TargetExists, TargetReplaced
from support.engine.plans import segment_plan, stream_plan, whole_plan

if TYPE_CHECKING:
    from sluice.core.copy.plan import StreamPlan
    from sluice.core.workloads.plan import Plan

FROM: Final = StoreAddress(uri="tcp://from:9090")
TO: Final = StoreAddress(uri="tcp://to:9090")


def map_of(plan: Plan) -> PositionMap:
    """Return the map of positions of a target that was published by this plan."""
    (segment,) = plan.streams[0].segments
    mapped = MappedSegment(
        segment=segment.id, start=0, end=segment.end, target_segment=segment.id, shift=0
    )
    sources = (MappedSource(stream="in/s", segments=(mapped,)),)
    return PositionMap(target="out/t", same_positions=True, sources=sources)


def located(plan: Plan) -> Plan:
    """Return the plan between the stores of the cluster."""
    return plan.model_copy(update={"sources": (FROM,), "target": TO})


@dataclass
class Store:
    """The copy's data in the target store, and whether stores can be reached.

    Attributes:
        source, target: whether each store answers.
        length: bytes of the source; it may grow.
        recorded: the plan that a driver recorded in the store.
        staged: number of staged bytes.
        whole: the plan by which the target was published.
        foreign: whether another client's stream is in the target's place.
        epoch: number of times that staging was dropped.
    """

    source: bool = True
    target: bool = True
    length: int = 1000
    recorded: Plan | None = None
    staged: int = 0
    whole: Plan | None = None
    foreign: bool = False
    epoch: int = 0

    @property
    def holds_something(self) -> bool:
        """Tell whether the store holds data of the copy that are not published."""
        return self.recorded is not None or self.staged > 0

    def ask(self, known: StreamPlan | None, *, again: bool) -> Answer:
        """See `sluice.engine.copy.query.ask`."""
        del again  # a stream is whole or is not
        if not (self.source and self.target):
            raise StoreUnavailable("no connection")
        if self.foreign:
            raise TargetExists("out/orders exists", field="spec.target.stream")
        if self.whole is not None and self.recorded is None:
            if known is not None and known.hash != self.whole.streams[0].hash:
                raise TargetReplaced("the target holds another copy")
            return Complete(
                digest="d" * 64,
                bytes=self.whole.bytes,
                events=1,
                segments=1,
                positions=map_of(self.whole),
            )
        if self.recorded is not None:
            return Planned(plan=self.recorded, recorded=True)
        return Planned(plan=planned(self.length))

    def progress(self, known: Plan) -> Progress:
        """See `sluice.engine.copy.progress.ProgressWatch`."""
        return Progress(
            bytes=known.bytes if self.whole else self.staged,
            total=known.bytes,
            published=self.whole is not None,
        )

    def abandon(self) -> None:
        """See `sluice.engine.copy.query.abandon`."""
        if not self.target:
            raise StoreUnavailable("no connection")
        self.recorded, self.staged = None, 0
        self.epoch += 1


@lru_cache
def planned(length: int) -> Plan:
    """Return the plan of a source of this length."""
    return located(whole_plan(stream_plan(segment_plan(length))))
