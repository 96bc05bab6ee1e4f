"""The parts below the operator in simulations: the time, the engine, and calls step by step.

The operator's own code runs as it is. Only its clocks are this module's. A model gives the engine's
answers and acts in stores: the protocol's own state machines prove the engine.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime, tzinfo
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast
from unittest import mock

import structlog

from sluice.core.reconcile.copies import following as decisions
from sluice.engine.workloads import scope, stream, workload
from sluice.errors import ApiUnavailable, SluiceError, StoreUnavailable
from sluice.kube.api import objects, status
from sluice.kube.copies import cutover, observer
from sluice.kube.ephemeral import conflicts, performer
from sluice.kube.ephemeral import observer as ephemeral_observer
from support.reconcile.copies import NOW, UID

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator
    from types import ModuleType

    from sluice.core.scope.progress import Progress
    from sluice.core.values.wish import Wish
    from sluice.core.workloads.answers import Answer, ScopeEnded
    from sluice.core.workloads.plan import Plan
    from sluice.kube.api.client import Api
    from sluice.kube.api.kinds import Object
    from support.kube.api_server import ApiServer

T = TypeVar("T")
_CRITICAL = 50
_SMALL = 600


@dataclass
class Clock:
    """The time of the simulation that runs."""

    now: datetime = NOW

    def monotonic(self) -> float:
        """See time.monotonic."""
        return self.now.timestamp()


CLOCK = Clock()


class _Datetime(datetime):
    """A datetime with the simulation's time."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        """Return the simulation's time."""
        assert tz is not None
        return CLOCK.now


class Stores(Protocol):
    """The stores' data of one copy, for the engine's questions."""

    def of(self, request: Any) -> Stores:
        """Return the data of a request: of a run of its own, if the copy has several."""
        ...

    def record(self, ended: ScopeEnded) -> int:
        """See `engine.scope.query.record_scope_run`."""
        ...

    def ask(self, known: Plan | None, *, again: bool) -> Answer:
        """See `engine.copy.query.ask` and its like."""
        ...

    def progress(self, known: Plan) -> tuple[Progress, Plan | None]:
        """Return a plan's progress, and the plan that a driver has made in its place."""
        ...

    def abandon(self) -> None:
        """See `engine.copy.query.abandon` and its like."""
        ...


@dataclass(frozen=True, eq=False)
class Place:
    """The stores at a StreamStore's address."""

    stores: Stores


class _Watch:
    """A stand-in for ScopeWatch."""

    def __init__(self, plan: Plan, target: Place) -> None:
        self._wanted, self._target = plan, target
        self.plan: Plan | None = None

    def measure(self) -> Progress:
        """Return the present progress."""
        progress, self.plan = self._target.stores.progress(self._wanted)
        return progress


class _UnplannedWatch(_Watch):
    """A stand-in for UnplannedScopeWatch."""

    def __init__(self, request: object, plan: Plan, target: Place) -> None:
        assert request
        super().__init__(plan, target)


class _FollowWatch(_Watch):
    """A stand-in for FollowWatch."""

    def __init__(self, plan: Plan, source: Place, target: Place) -> None:
        assert source
        super().__init__(plan, target)


def _as_asked(_: object, answer: Answer, __: object) -> Answer:
    return answer


def _write_wish(workload: Any, target: Place, wish: Wish, *, key: str) -> bool:
    assert key == UID, "only the copy's owner consents to a seal"
    wished: bool = cast("Any", target.stores.of(workload.request)).wished(wish)
    return wished


def _ask(request: object, *, target: tuple[object, Place], known: Any, **others: Any) -> Answer:
    return target[1].stores.of(request).ask(known, again=others.get("again", False))


def _abandon(request: object, *, target: Place, **__: object) -> str:
    target.stores.of(request).abandon()
    return "whatever was there"


def _record(request: object, ended: ScopeEnded, target: Place, _: object) -> int:
    return target.stores.of(request).record(ended)


def _there(place: Place) -> Place:
    return place


_ENGINE: tuple[tuple[ModuleType, dict[str, Any]], ...] = (
    (
        stream,
        {
            "ask": _ask,
            "abandon": _abandon,
            "ProgressWatch": _Watch,
            "FollowWatch": _FollowWatch,
            "followed": _as_asked,
            "live": _there,
        },
    ),
    (cutover, {"write_wish": _write_wish}),
    (
        scope,
        {
            "ask_scope": _ask,
            "abandon_runs": _abandon,
            "record_scope_run": _record,
            "ScopeWatch": _Watch,
            "FollowedScopeWatch": _FollowWatch,
            "UnplannedScopeWatch": _UnplannedWatch,
            "live": _there,
            "root": _there,
        },
    ),
    (workload, {"live": _there}),
)
"""Stand-ins for the engine behind the workloads, by module."""


def _claims(name: str) -> Callable[..., Any]:
    """Return a stand-in for a function of `engine.claims.claims`, which calls the store's own."""
    return lambda claim, store, *what, **how: getattr(store, name)(claim, store, *what, **how)


_CLAIMS = SimpleNamespace(
    **{name: _claims(name) for name in ("look", "make", "adopt", "configure", "release")}
)


@contextmanager
def simulated() -> Iterator[None]:
    """Give the operator the simulation's time and engine, and switch its log off."""
    with ExitStack() as stack:
        for module in (observer, performer, ephemeral_observer, objects, conflicts, status):
            stack.enter_context(mock.patch.object(module, "datetime", _Datetime))
        steady = SimpleNamespace(monotonic=CLOCK.monotonic)
        for module in (observer, ephemeral_observer):
            stack.enter_context(mock.patch.object(module, "time", steady))
        for module, names in _ENGINE:
            stack.enter_context(mock.patch.multiple(module, **names))
        for module in (performer, ephemeral_observer):
            stack.enter_context(mock.patch.object(module, "claims", _CLAIMS))
        # The plans are small here, and both kinds of Jobs have to be made.
        stack.enter_context(mock.patch.object(decisions, "SMALL", _SMALL))
        quiet = structlog.make_filtering_bound_logger(_CRITICAL)
        structlog.configure(wrapper_class=quiet)
        yield


class _Turn:
    """A pause in which other actors act."""

    def __await__(self) -> Generator[None, None, None]:
        """Pause until the next step."""
        yield


class Calls:
    """The calls of one operator. Before each call other actors act. Each call may be lost.

    Attributes:
        lost: fate of the next call: `request` if it never arrives, `reply` if it is carried out but
            the caller gets no answer.
    """

    def __init__(self) -> None:
        self.lost = ""

    async def begin(self, error: type[SluiceError]) -> SluiceError | None:
        """Begin a call. Return the error to raise after it is carried out, if any."""
        await _Turn()
        lost, self.lost = self.lost, ""
        if lost == "request":
            raise error("the call was lost")
        return error("the reply was lost") if lost == "reply" else None

    async def blocking(self, call: Callable[[], T]) -> T:
        """See `kube.loop.memory.Blocking`."""
        told = await self.begin(StoreUnavailable)
        found = call()
        if told is not None:
            raise told
        return found


class SteppedApi:
    """The API server as one operator reaches it."""

    def __init__(self, server: ApiServer, calls: Calls) -> None:
        self._server = server
        self._calls = calls

    @property
    def api(self) -> Api:
        """The server, with the operator's type for it."""
        return cast("Api", self)

    def time(self) -> float:
        """See Api.time."""
        return self._server.time()

    def __getattr__(self, verb: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        """Return a verb of the API."""
        return partial(self._call, verb)

    async def pages(self, *what: Any, **how: Any) -> AsyncIterator[list[Object]]:
        """See Api.pages. There is one page."""
        yield await self._call("list", *what, **how)

    async def _call(self, verb: str, *what: Any, **how: Any) -> Any:
        told = await self._calls.begin(ApiUnavailable)
        found = await getattr(self._server, verb)(*what, **how)
        if told is not None:
            raise told
        return found


class Stepped(Generic[T]):
    """A coroutine that goes on by one call at a time.

    Args:
        coroutine: the work.
        calls: calls of the operator that does the work.

    Attributes:
        result: the result, once the coroutine is over.
        error: the error with which it ended, if any.
    """

    def __init__(self, coroutine: Coroutine[Any, Any, T], calls: Calls) -> None:
        self._coroutine = coroutine
        self._calls = calls
        self.result: T | None = None
        self.error: SluiceError | None = None

    def step(self, lost: str = "") -> bool:
        """Go on to the next call. Return False once the coroutine is over.

        Args:
            lost: fate of the call that is made now.
        """
        self._calls.lost = lost
        try:
            self._coroutine.send(None)
        except StopIteration as stop:
            self.result = stop.value
        except SluiceError as error:
            self.error = error
        else:
            return True
        return False

    def close(self) -> None:
        """End the coroutine where it is."""
        self._coroutine.close()


def at_once(coroutine: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine that never waits, as those of an API server in memory."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        found: T = stop.value
        return found
    raise AssertionError("it waits")
