"""Trace the looks at resources that lead to actions.

The looks that belong to one attempt of a copy are one trace: those that prepare it, the one that
makes its Job, and those that end it. The first is the parent of the others. This is only kept in
memory: whatever is at the API server, others may have written. So another operator begins a new
trace.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sluice import tracing
from sluice.api.status.common import ConditionType

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sluice.kube.api.kinds import Object
    from sluice.kube.loop.decided import Decided

BEGINS: Final = "StartJob"
"""The action that begins an attempt."""


@dataclass(slots=True)
class _Trace:
    """The trace of an attempt.

    Attributes:
        uid: of the copy.
        attempt: the attempt's number.
        begun: whether its Job was made, or tried to be made.
        context: of the first look.
    """

    uid: str
    attempt: int
    begun: bool
    context: str

    def has(self, uid: str, attempt: int) -> bool:
        """Tell whether a look belongs to it."""
        return uid == self.uid and (
            attempt == self.attempt or (attempt > self.attempt and not self.begun)
        )


class Traces:
    """The traces of the resources of a kind."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], _Trace] = {}

    @contextmanager
    def acting(self, body: Object, decided: Decided, since: int) -> Iterator[None]:
        """Trace a look that has led to a decision, and what the block does by it.

        Args:
            body: the resource.
            decided: the decision.
            since: when the look began; see `tracing.now`.
        """
        if not (decided.actions and tracing.is_on()):
            yield
            return
        meta, status = body["metadata"], decided.status
        key, uid = (meta["namespace"], meta["name"]), meta["uid"]
        attempt: int | None = getattr(status, "attempts", None)
        known = self._known.get(key)
        if known is not None and (attempt is None or not known.has(uid, attempt)):
            known = None
        ready = status.condition(ConditionType.READY)
        with tracing.span(
            "reconcile",
            parent="" if known is None else known.context,
            since=since,
            kind=body["kind"],
            namespace=key[0],
            resource=key[1],
            uid=uid,
            attempt=attempt,
            reason=None if ready is None else ready.reason,
        ) as span:
            tracing.begin("look", since=since).end()
            if attempt is not None:
                begins = any(type(one).__name__ == BEGINS for one in decided.actions)
                if known is None:
                    known = self._known[key] = _Trace(uid, attempt, begins, span.context)
                known.attempt, known.begun = attempt, known.begun or begins
            yield

    def forget(self, namespace: str, name: str) -> None:
        """Forget a resource that is gone."""
        self._known.pop((namespace, name), None)
