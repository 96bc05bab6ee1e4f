"""Planning the streams of a scope: what each planner does, whatever streams are copied to.

A planner looks at what is chosen of the source, and which of it is done already; of all else it
takes the bounds.
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
"""What is done for one stream."""

_FEW: Final = 5
"""Names in a message; the plan and the status have more."""


class Fresh(NamedTuple):
    """A stream that is to be bound, and whether its target is there and is added to."""

    chosen: Chosen
    append: bool


class ScopePlanner(ABC):
    """Looks at the streams of a scope and plans them. Nothing is changed.

    Args:
        request: what is wanted.

    Attributes:
        plans: of the streams that are to be copied.
        settled: what came of those that are not: their targets are whole, or it cannot be done.
        known: plans of a run before by their copy ids, to hold whole targets against.
    """

    def __init__(self, request: ScopeRequest) -> None:
        self.request = request
        self.plans: list[Item] = []
        self.settled: list[StreamResult] = []
        self.known: Mapping[str, StreamPlan] = {}
        self._taken: list[int] = []

    # -- what there is, for subclasses to say

    @abstractmethod
    def choose(self, *, one_store: bool) -> Choice:
        """What is chosen of the source.

        Args:
            one_store: whether the target is in the store that the source is in.

        Raises:
            ScopeNotFound: there is no source.
            InvalidSpec, PlanTooLarge: what is selected cannot be copied in this way.
        """

    @abstractmethod
    def look_at(self, streams: Sequence[str]) -> None:
        """Look at these streams of the source, to bind them."""

    @abstractmethod
    def tables(self) -> list[str]:
        """The key-value tables of the source."""

    @abstractmethod
    def there(self) -> list[str] | None:
        """What may be a target: all that is where targets are; None where there is no such scope.

        Targets that are to be made are not among them.
        """

    @abstractmethod
    def bind(self, fresh: Sequence[Fresh]) -> None:
        """Take the bounds of streams that were looked at, and plan them."""

    @abstractmethod
    def exist(self, exists: Sequence[Chosen]) -> SluiceError:
        """The error that these targets are there, and this copy did not make them."""

    @abstractmethod
    def _stand(self, one: Chosen) -> Item | StreamResult | Fresh | None:
        """What there is of a stream's copy; None where its target is there and not ours."""

    @abstractmethod
    def _ours(self, there: Sequence[str]) -> list[str]:
        """Those of what is there that some copy may have made."""

    @abstractmethod
    def _has_made(self, target: str, stream: str) -> bool:
        """Whether this copy has made a target of a stream, and it is whole."""

    # -- what follows from that

    @property
    def taken(self) -> tuple[int, int]:
        """When the first and the last bounds were taken; now, where none were."""
        moments = self._taken or [_now()]
        return min(moments), max(moments)

    def fail(self, one: Chosen, error: SluiceError) -> None:
        """A stream cannot be copied."""
        self.settled.append(failed(*one, error))

    def stand(
        self, chosen: Sequence[Chosen], asked: Collection[Chosen]
    ) -> tuple[list[Fresh], list[Chosen]]:
        """Look what there is of some streams' copies.

        Args:
            chosen: the streams.
            asked: those of them of which there may be something where targets are.

        Returns:
            Those that are to be bound, and those whose target is there, is somebody's, and is not
            to be added to.
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
        """Look for streams that this copy has moved, so that the source has them no more.

        Args:
            chosen: those that the source has.
            there: what there is where targets are.

        Returns:
            Whether there are any.
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
        """The stream of which a target is whole, if this copy has made it."""
        return next(
            (
                selection.Chosen(stream, target)
                for stream in selection.origins_of(target, self.request.rename)
                if self._has_made(target, stream)
            ),
            None,
        )

    def _take(self) -> None:
        """Note that bounds are taken now."""
        self._taken.append(_now())


class LivePlanner(ScopePlanner):
    """Plans what is done with the streams of a scope of a live store.

    Args:
        request: what is wanted.
        source: the store to read from.
    """

    def __init__(self, request: ScopeRequest, source: Source) -> None:
        super().__init__(request)
        self.source = source
        self._seen: dict[str, Stream | SluiceError] = {}

    def choose(self, *, one_store: bool) -> Choice:
        """See ScopePlanner."""
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
        """See ScopePlanner."""
        found = parallel.each_once("describe", self._describe, streams, key=str)
        self._seen |= zip(streams, found, strict=True)

    def tables(self) -> list[str]:
        """See ScopePlanner."""
        return self.source.list_key_value_tables(self.request.source)

    def _ready(self, fresh: Iterable[Fresh]) -> list[tuple[Fresh, Stream]]:
        """Those of the streams that can be bound, as they were seen; the others fail."""
        ready = []
        for one in fresh:
            stream = self._seen[one.chosen.stream]
            if isinstance(stream, SluiceError):
                self.fail(one.chosen, stream)
            elif identity.is_unfinished(stream.config.tags):
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
    """The result of a stream that cannot be copied. No field of a scope's copy is about it."""
    trouble = Trouble.of(error).model_copy(update={"field": None})
    return StreamResult(stream=stream, target=target, state=StreamState.FAILED, trouble=trouble)


def is_for_all(error: SluiceError) -> bool:
    """Whether an error is about a whole store, rather than one of its streams."""
    return error.retryable or isinstance(error, AuthenticationFailed)


def refuse_too_many(count: int) -> None:
    """Refuse more streams than a plan can have. PlanTooLarge."""
    if count > MOST_STREAMS:
        raise PlanTooLarge(
            f"{count} streams are selected, and a plan has at most {MOST_STREAMS}",
            field="spec.streams",
            remedy="Select a part of them, and copy the others with another ScopeCopy.",
        )


def in_the_making(name: StreamName) -> StoreBusy:
    """The error that a stream is the target of a copy that is not done."""
    return StoreBusy(
        f"{name} is being made by another copy",
        remedy="Have what failed tried again when that copy is done.",
    )


def few(names: Sequence[str]) -> str:
    """The first of some names, and how many follow."""
    more = f" and {len(names) - _FEW} more" if len(names) > _FEW else ""
    return f"{', '.join(names[:_FEW])}{more}"


def _is_own(name: str, tags: tuple[str, ...], request: ScopeRequest) -> bool:
    """Whether a stream is a target that this very copy has made."""
    return any(
        identity.is_ours(tags, identity.stream_copy_id(request.scope_id, origin))
        for origin in selection.origins_of(name, request.rename)
    )


def _now() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000
