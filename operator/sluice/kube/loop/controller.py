"""Working keys off the queue: each goes to what reconciles its kind."""

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
    """Looks after resources of a kind."""

    async def reconcile(self, key: Key) -> float | None:
        """Look after one resource; seconds until it is looked at again. SluiceError: later."""
        ...


class Controller:
    """Works keys off the queue.

    Args:
        kinds: who looks after the resources of a kind, by its name.
        queue: where keys come from, and go back to.
        metrics: what happened.
    """

    def __init__(
        self, kinds: Mapping[str, Reconciles], *, queue: WorkQueue, metrics: Metrics
    ) -> None:
        self._kinds = kinds
        self._queue = queue
        self._metrics = metrics

    async def work(self, lane: Lane) -> None:
        """Work off one lane, for ever. An error of one resource concerns that one alone."""
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
