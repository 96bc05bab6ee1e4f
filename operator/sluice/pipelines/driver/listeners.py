"""Log the steps, retries and results of copies in a driver's output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import structlog

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.core.copy.steps import Step
    from sluice.core.scope.scope import StreamResult
    from sluice.engine.tasks.work import Work
    from sluice.errors import SluiceError

_log = structlog.get_logger()


class Journalist:
    """A listener that logs each new kind of step, each retry, and results of a scope's streams."""

    def __init__(self) -> None:
        self._last: dict[int, str] = {}

    def step(self, copy: Work[Any, Any], step: Step) -> None:
        """Log a step; at debug level if the copy's last step was of the same kind."""
        kind = type(step).__name__
        log = _log.debug if self._last.get(copy.number) == kind else _log.info
        self._last[copy.number] = kind
        log("step", step=kind, target=str(copy.plan.target))

    def retry(self, copy: Work[Any, Any], error: SluiceError, delay: float) -> None:
        """Log an error after which the copy tries again in `delay` seconds."""
        _log.warning(
            "trying again",
            target=str(copy.plan.target),
            reason=error.reason,
            error=str(error),
            seconds=round(delay, 1),
        )

    def ended(self, result: StreamResult) -> None:
        """Log the result of a stream."""
        if result.trouble is not None:
            _log.error(
                "stream failed",
                stream=result.stream,
                target=result.target,
                **result.trouble.model_dump(mode="json", exclude_none=True),
            )
            return
        _log.info(
            "stream done",
            stream=result.stream,
            target=result.target,
            digest=result.digest,
            bytes=result.bytes,
            events=result.events,
        )

    def joined(self, streams: Sequence[str]) -> None:
        """Log which streams join."""
        _log.info("streams join", streams=streams)


class ScopeJournalist(Journalist):
    """A listener to the many streams of a scope, whose steps it logs at debug level."""

    def step(self, copy: Work[Any, Any], step: Step) -> None:
        """Log a step at debug level."""
        _log.debug("step", step=type(step).__name__, target=str(copy.plan.target))
