"""Tools of all observers: memories of resources between looks, and threads for blocking calls."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Generic, ParamSpec, TypeVar

from sluice.kube.api.fence import Fence
from sluice.stores.allowance import current_tenant
from sluice.stores.deadline import within

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor, Future

    from sluice.stores.allowance import Allowance

_M = TypeVar("_M")
_P = ParamSpec("_P")
_T = TypeVar("_T")


class Memories(Generic[_M]):
    """Memories of the resources of a kind, which only spare calls.

    Args:
        make: makes the memory of a resource that is seen for the first time.
    """

    def __init__(self, make: Callable[[], _M]) -> None:
        self._make = make
        self._known: dict[tuple[str, str], tuple[str, _M]] = {}

    def of(self, namespace: str, name: str, uid: str) -> _M:
        """Return a resource's memory. A resource with another uid gets a new one."""
        known = self._known.get((namespace, name))
        if known is None or known[0] != uid:
            known = self._known[namespace, name] = (uid, self._make())
        return known[1]

    def forget(self, namespace: str, name: str) -> None:
        """Forget a resource that is gone, or needs nothing any more."""
        self._known.pop((namespace, name), None)


class BoundedThreads(ThreadPoolExecutor):
    """Pool of threads that bounds each call's time and memory for answers of stores.

    So every call ends, whatever a store does, and so does the look at a resource that awaits it.

    Args:
        most: threads at a time.
        seconds: the most time of one call.
        allowance: bounds the memory that the answers of stores may take in all calls.
        fence: while it is closed, no call begins; None for threads that only read.
    """

    def __init__(
        self, most: int, seconds: float, allowance: Allowance, fence: Fence | None = None
    ) -> None:
        super().__init__(most, thread_name_prefix="store")
        self._seconds = seconds
        self._allowance = allowance
        self._fence = fence or Fence()

    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        """Run a call within the time and memory of its tenant; see Executor.

        The result raises ApiUnavailable if the fence is closed when the call would begin.
        """
        namespace = current_tenant()

        def bounded() -> _T:
            self._fence.check()
            with within(self._seconds), self._allowance.look(namespace):
                return fn(*args, **kwargs)

        return super().submit(bounded)


class Blocking:
    """Caller of blocking functions, such as calls to stores, in threads.

    Args:
        threads: the threads.
    """

    def __init__(self, threads: Executor) -> None:
        self._threads = threads

    async def __call__(self, call: Callable[[], _T]) -> _T:
        """Return what the call returns, or raise what it raises."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)
