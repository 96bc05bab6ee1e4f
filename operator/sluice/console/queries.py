"""Tell how far a query is, in a few words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.core.values.text import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sluice.api.status.query_status import StreamQueryStatus


def query_numbers(status: StreamQueryStatus) -> Iterator[str]:
    """Yield version, rows, lag, watermark and attempts of a query, as far as they are known."""
    version, progress = status.version, status.progress
    if version is not None:
        yield f"version {version.number}"
    if progress is not None:
        yield counted(progress.rows, "row")
        if progress.lag is not None:
            yield f"lag {progress.lag}"
        if progress.watermark is not None:
            yield f"watermark {progress.watermark:%Y-%m-%dT%H:%M:%SZ}"
        if progress.late_events:
            yield counted(progress.late_events, "late event")
    if status.attempts:
        yield counted(status.attempts, "attempt")
    if status.failures:
        yield f"{status.failures:,} failed in a row"
    if status.retry_time is not None:
        yield f"next at {status.retry_time:%Y-%m-%dT%H:%M:%SZ}"
