"""Decide which runs of an archive are dropped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.core.values.model import Frozen

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from sluice.core.archive.head import RunEntry


class Retention(Frozen):
    """The rules by which runs are kept. A run stays if any rule keeps it; without rules all stay.

    Attributes:
        keep_last: keep this many of the last runs.
        keep_seconds: keep runs that hold the stream up to a time no longer ago than this.
    """

    keep_last: int | None = None
    keep_seconds: int | None = None

    def and_what(self, other: Retention) -> Retention:
        """Return rules that keep each run that this retention or another one keeps."""
        if not (self.has_rule and other.has_rule):
            return Retention()
        return Retention(
            keep_last=_more(self.keep_last, other.keep_last),
            keep_seconds=_more(self.keep_seconds, other.keep_seconds),
        )

    @property
    def has_rule(self) -> bool:
        """Whether there is a rule; without one all runs are kept."""
        return self.keep_last is not None or self.keep_seconds is not None


def _more(one: int | None, other: int | None) -> int | None:
    return max((it for it in (one, other) if it is not None), default=None)


def expired(
    runs: Sequence[RunEntry],
    retention: Retention,
    *,
    now: int,
    read: Container[int] = (),
    named: Container[str] = (),
) -> list[int]:
    """Return the numbers of the runs to drop.

    The last run always stays, since the next run adds to it. The newest verified run stays too, as
    the run that can be relied on. So do runs that are being read, and those that are named.

    Args:
        runs: the archive's runs, by number.
        retention: the rules.
        now: the time in ms.
        read: the numbers of the runs that are being read.
        named: the SHA-256 of the manifests of runs that stay in any case.
    """
    if retention.keep_last is None and retention.keep_seconds is None:
        return []
    kept = {one.run for one in runs[-1:]}
    kept |= {one.run for one in [one for one in runs if one.verified][-1:]}
    if retention.keep_last is not None:
        kept |= {one.run for one in runs[-retention.keep_last :]}
    if retention.keep_seconds is not None:
        since = now - retention.keep_seconds * 1000
        kept |= {one.run for one in runs if one.time >= since}
    kept |= {one.run for one in runs if one.run in read or one.sha256 in named}
    return [one.run for one in runs if one.run not in kept]
