"""Report how a driver has ended: in a span, in the log and in the termination message."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import structlog

from sluice import tracing
from sluice.core.values.trouble import Trouble
from sluice.errors import Category
from sluice.pipelines.driver import termination
from sluice.pipelines.driver.stopping import Terminated

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sluice.pipelines.driver.termination import Report

_log = structlog.get_logger()

_INTERRUPTED = Trouble(
    reason="Interrupted",
    category=Category.INFRASTRUCTURE,
    message="the driver was told to stop before its work was done",
    remedy="Nothing has to be done: the next attempt goes on where this one stopped.",
    retryable=True,
)


def reported(
    name: str, log: Path | None, work: Callable[[], tuple[Trouble | None, Report | None]]
) -> Trouble | None:
    """Do the work of a driver in a span, and write the termination message.

    Args:
        name: of the span.
        log: file for the message.
        work: returns why it failed, if it did, and a report for the operator.

    Returns:
        Why the work failed; None if it did not.

    Raises:
        Terminated: SIGTERM came.
        Exception: a bug in Sluice.
    """
    try:
        with tracing.span(
            name,
            parent=tracing.inherited(),
            resource=os.environ.get("SLUICE_RESOURCE"),
            attempt=os.environ.get("SLUICE_ATTEMPT"),
        ) as span:
            trouble, told = work()
            if trouble is not None:
                _log.error("failed", **trouble.model_dump(mode="json", exclude_none=True))
                span.fail(trouble.reason)
    except Terminated:
        termination.write(log, _INTERRUPTED)
        raise
    except Exception as error:
        termination.write(log, _bug(error))
        raise
    termination.write(log, trouble, told)
    _log.info("driver ended")
    return trouble


def _bug(error: Exception) -> Trouble:
    return Trouble(
        reason="InternalError",
        category=Category.INFRASTRUCTURE,
        message=f"{type(error).__name__}: {error}",
        remedy="Report it with the log of the driver's pod, which has the details.",
        retryable=True,
    )
