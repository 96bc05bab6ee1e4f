"""Take keys off the queue, and give each to the reconciler of its kind."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

import structlog

from sluice.errors import SluiceError
from sluice.stores.allowance import tenant

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sluice.kube.loop.queue import Key, Lane, WorkQueue
    from sluice.metrics import Metrics

_log = structlog.get_logger()


class Reconciles(Protocol):
    """Reconciler of the resources of a kind."""

    async def reconcile(self, key: Key) -> float | None:
        """Reconcile one resource.

        Returns:
            Seconds until it is looked at again; None to wait for an event.

        Raises:
            SluiceError: it is tried again later.
        """
        ...


class Controller:
    """Workers' loop over the queue.

    Args:
        kinds: the reconcilers, by the names of their kinds.
        queue: the queue of keys.
        metrics: takes times and results.
    """

    def __init__(
        self, kinds: Mapping[str, Reconciles], *, queue: WorkQueue, metrics: Metrics
    ) -> None:
        self._kinds = kinds
        self._queue = queue
        self._metrics = metrics

    async def work(self, lane: Lane) -> None:
        """Work on the keys of one lane, for ever. An error of a resource delays that one alone."""
        while True:
            key = await self._queue.take(lane)
            begun, again, result = time.monotonic(), None, "error"
            self._metrics.observe("sluice_queue_wait_seconds", self._queue.waited(key), lane=lane)
            with structlog.contextvars.bound_contextvars(resource=str(key)), tenant(key.namespace):
                try:
                    again = await self._kinds[key.kind].reconcile(key)
                    result = "ok"
                except SluiceError as error:
                    _log.warning("to be tried again", error=str(error))
                except Exception:  # noqa: BLE001 - a bug met at one resource must not stop all
                    _log.exception("unexpected")
                finally:
                    self._queue.done(key, again=again, failed=result == "error")
            self._metrics.observe(
                "sluice_reconcile_seconds", time.monotonic() - begun, kind=key.kind
            )
            self._metrics.count("sluice_reconcile_total", kind=key.kind, result=result)
