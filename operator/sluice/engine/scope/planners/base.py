"""Plan the streams of a scope: what all planners do, wherever streams are copied to.

A planner looks at the chosen streams of the source, and finds which are done already. It takes the
bounds of all others.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final, NamedTuple

from sluice.core.archive.plan import ArchivePlan
from sluice.core.claims.claim import is_ephemeral
from sluice.core.copy.plan import StreamPlan
from sluice.core.scope import selection
from sluice.core.scope.scope import MOST_STREAMS, StreamResult, StreamState, Why
from sluice.core.values import identity
from sluice.core.values.model import StreamName
from sluice.core.values.trouble import Trouble
from sluice.engine.access import parallel
from sluice.engine.claims import ownership
from sluice.errors import (
    AuthenticationFailed,
    PlanTooLarge,
    SluiceError,
    SourceNotFound,
    StoreBusy,
)
from sluice.stores.reading import Stream

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from sluice.core.scope.request import ScopeRequest
    from sluice.core.scope.selection import Choice, Chosen
    from sluice.stores.base import Source

Item = StreamPlan | ArchivePlan
"""The plan for one stream: a copy, or a run of its archive."""

_FEW: Final = 5
"""How many names a message lists; the plan and the status have more."""


class Fresh(NamedTuple):
    """A stream whose bounds are to be taken, and whether its target may exist and be added to."""

    chosen: Chosen
    append: bool


class ScopePlanner(ABC):
    """A planner for the streams of a scope. It changes nothing in the stores.

    Args:
        request: the copy to plan.

    Attributes:
        plans: the plans of the streams that are to be copied.
        settled: the results of the other streams: their targets are complete, or they cannot be
            copied.
        known: plans of a previous run by copy id, to check complete targets against.
        restored: the number of the scope's run that is restored; None for any other copy.
    """

    def __init__(self, request: ScopeRequest) -> None:
        self.request = request
        self.plans: list[Item] = []
        self.settled: list[StreamResult] = []
        self.known: Mapping[str, StreamPlan] = {}
        self.restored: int | None = None
        self._taken: list[int] = []

    # -- what differs by source and target, for subclasses

    @abstractmethod
    def choose(self, *, one_store: bool) -> Choice:
        """Choose the streams of the source that the request selects, and look at them.

        Args:
            one_store: whether the target is in the source's store.

        Raises:
            ScopeNotFound: the source's scope does not exist.
            InvalidSpec, PlanTooLarge: the selected streams cannot be copied in this way.
        """

    @abstractmethod
    def look_at(self, streams: Sequence[str]) -> None:
        """Look at these streams of the source, so that their bounds can be taken."""

    @abstractmethod
    def tables(self) -> list[str]:
        """List the key-value tables of the source."""

    @abstractmethod
    def there(self) -> list[str] | None:
        """List all streams or archives that exist in the target; None if its scope does not exist.

        Streams of the copy that are not made yet are not among them.
        """

    @abstractmethod
    def bind(self, fresh: Sequence[Fresh]) -> None:
        """Take the bounds of streams that were looked at, and plan their copies."""

    @abstractmethod
    def exist(self, exists: Sequence[Chosen]) -> SluiceError:
        """Return the error that these targets exist, and this copy did not make them."""

    @abstractmethod
    def _stand(self, one: Chosen) -> Item | StreamResult | Fresh | None:
        """Find how far a stream's copy is.

        Returns:
            The plan of a copy that was begun; the result of one that is done or cannot be done; the
            stream if its bounds are to be taken; None if a target exists that this copy did not
            make and may not add to.
        """

    @abstractmethod
    def _ours(self, there: Sequence[str]) -> list[str]:
        """Return the names among these that a copy of Sluice may have made."""

    @abstractmethod
    def _has_made(self, target: str, stream: str) -> bool:
        """Tell whether this copy made a target from a stream, and the target is complete."""

    # -- what all planners have in common

    @property
    def taken(self) -> tuple[int, int]:
        """When the first and the last bounds were taken, in ms; the present time if none were."""
        moments = self._taken or [_now()]
        return min(moments), max(moments)

    def fail(self, one: Chosen, error: SluiceError) -> None:
        """Note that a stream cannot be copied."""
        self.settled.append(failed(*one, error))

    def stand(
        self, chosen: Sequence[Chosen], asked: Collection[Chosen]
    ) -> tuple[list[Fresh], list[Chosen]]:
        """Find how far the copies of streams are, and note plans and results of those begun.

        Args:
            chosen: the streams.
            asked: the streams whose copies may have left something in the target.

        Returns:
            The streams whose bounds are to be taken, and the streams whose target exists, was not
            made by this copy, and may not be added to.
        """
        found = dict(
            zip(asked, parallel.each_once("stand", self._stand, [*asked], key=tuple), strict=True)
        )
        fresh: list[Fresh] = []
        exists: list[Chosen] = []
        for one in chosen:
            match found.get(one, Fresh(one, append=False)):
                case None:
                    exists.append(one)
                case StreamResult() as result:
                    self.settled.append(result)
                case Fresh() as new:
                    fresh.append(new)
                case plan:
                    self.plans.append(plan)
        return fresh, exists

    def moved(self, chosen: Sequence[Chosen], there: Sequence[str]) -> bool:
        """Find streams that this copy has moved already, which the source has no more.

        Args:
            chosen: the chosen streams that the source has.
            there: the names that exist in the target.

        Returns:
            Whether there are any such streams.
        """
        known = {one.target for one in chosen}
        ours = [name for name in self._ours(there) if name not in known] if there else []
        gone = [
            one
            for one in parallel.each_once("origin", self._origin, ours, key=str)
            if one is not None
        ]
        self.stand(gone, gone)
        return bool(gone)

    def _origin(self, target: str) -> Chosen | None:
        """Return the stream from which this copy made a complete target, if it did."""
        return next(
            (
                selection.Chosen(stream, target)
                for stream in selection.origins_of(target, self.request.rename)
                if self._has_made(target, stream)
            ),
            None,
        )

    def _take(self) -> None:
        """Note the present time as one at which bounds are taken."""
        self._taken.append(_now())


class LivePlanner(ScopePlanner):
    """A planner for the streams of a scope in a live store.

    Args:
        request: the copy to plan.
        source: the store to read from.
    """

    def __init__(self, request: ScopeRequest, source: Source) -> None:
        super().__init__(request)
        self.source = source
        self._seen: dict[str, Stream | SluiceError] = {}

    def choose(self, *, one_store: bool) -> Choice:
        """Choose the streams of the source's scope that the request selects, and describe them."""
        request, store = self.request, self.source
        names = store.list_streams(request.source, internal=True)
        tags = selection.tags_of(request)
        found = parallel.each(lambda tag: frozenset(store.list_streams(request.source, tag)), tags)
        tagged = dict(zip(tags, found, strict=True))
        wanted = selection.selected(names, tagged=tagged, request=request)
        left: dict[str, Why] = {}
        if not request.ephemeral:
            prefixes = ownership.claimed_prefixes(store, request.source)
            left = dict.fromkeys((n for n in wanted if n.startswith(prefixes)), Why.EPHEMERAL)
        refuse_too_many(len(wanted) - len(left))
        self.look_at([name for name in wanted if name not in left])
        for name, stream in self._seen.items():
            own = stream.config.tags if isinstance(stream, Stream) else ()
            if one_store and request.source == request.target and _is_own(name, own, request):
                left[name] = Why.OWN
            elif is_ephemeral(own) and not request.ephemeral:
                left[name] = Why.EPHEMERAL
        return selection.choose(
            names, tagged=tagged, left=left, request=request, one_store=one_store
        )

    def look_at(self, streams: Sequence[str]) -> None:
        """Describe these streams of the source."""
        found = parallel.each_once("describe", self._describe, streams, key=str)
        self._seen |= zip(streams, found, strict=True)

    def tables(self) -> list[str]:
        """List the key-value tables of the source's scope."""
        return self.source.list_key_value_tables(self.request.source)

    def _ready(self, fresh: Iterable[Fresh]) -> list[tuple[Fresh, Stream]]:
        """Return the streams whose bounds can be taken, as they were seen; the others fail."""
        ready = []
        for one in fresh:
            stream = self._seen[one.chosen.stream]
            if isinstance(stream, SluiceError):
                self.fail(one.chosen, stream)
            elif identity.is_unreadable(stream.config.tags):
                self.fail(one.chosen, in_the_making(self._name(one.chosen.stream)))
            else:
                ready.append((one, stream))
        return ready

    def _describe(self, stream: str) -> Stream | SluiceError:
        name = self._name(stream)
        try:
            found = self.source.describe(name)
        except SluiceError as error:
            if is_for_all(error):
                raise
            return error
        gone = SourceNotFound(f"stream {name} does not exist in the source store any more")
        return gone if found is None else found

    def _name(self, stream: str) -> StreamName:
        return StreamName(scope=self.request.source, stream=stream)


def failed(stream: str, target: str, error: SluiceError) -> StreamResult:
    """Return the result of a stream that cannot be copied."""
    # The error's field is dropped, since no field of a ScopeCopy is about a single stream.
    trouble = Trouble.of(error).model_copy(update={"field": None})
    return StreamResult(stream=stream, target=target, state=StreamState.FAILED, trouble=trouble)


def is_for_all(error: SluiceError) -> bool:
    """Tell whether an error concerns a whole store, not only one of its streams."""
    return error.retryable or isinstance(error, AuthenticationFailed)


def refuse_too_many(count: int) -> None:
    """Raise PlanTooLarge if these are more streams than a plan can have."""
    if count > MOST_STREAMS:
        raise PlanTooLarge(
            f"{count} streams are selected, and a plan has at most {MOST_STREAMS}",
            field="spec.streams",
            remedy="Select a part of them, and copy the others with another ScopeCopy.",
        )


def in_the_making(name: StreamName) -> StoreBusy:
    """Return the error that a stream is the target of an unfinished copy."""
    return StoreBusy(
        f"{name} is being made by another copy",
        remedy="Have what failed tried again when that copy is done.",
    )


def few(names: Sequence[str]) -> str:
    """Return the first of the names, and how many follow."""
    more = f" and {len(names) - _FEW} more" if len(names) > _FEW else ""
    return f"{', '.join(names[:_FEW])}{more}"


def _is_own(name: str, tags: tuple[str, ...], request: ScopeRequest) -> bool:
    """Tell whether a stream is a target that this copy has made."""
    return any(
        identity.is_ours(tags, identity.stream_copy_id(request.scope_id, origin))
        for origin in selection.origins_of(name, request.rename)
    )


def _now() -> int:
    """Return the present time in ms since 1970."""
    return time.time_ns() // 1_000_000
