"""Which runs of an archive are let go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.core.values.model import Frozen

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from sluice.core.archive.head import RunEntry


class Retention(Frozen):
    """Which runs are kept: those that any of the rules keeps; all without a rule.

    Attributes:
        keep_last: as many of the last runs.
        keep_seconds: those that hold the stream up to a time no longer ago than this.
    """

    keep_last: int | None = None
    keep_seconds: int | None = None

    def and_what(self, other: Retention) -> Retention:
        """Give the rules that keep what either of two keeps."""
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


def let_go(
    runs: Sequence[RunEntry], retention: Retention, *, now: int, read: Container[int] = ()
) -> list[int]:
    """The numbers of the runs that are not kept.

    The last run stays, since it is what the next one adds to; so does the newest one that was
    verified, since it is what can be relied on; and so does one that somebody reads.

    Args:
        runs: that there are, by number.
        retention: the rules.
        now: the time in ms.
        read: the numbers of those that somebody reads.
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
    return [one.run for one in runs if one.run not in kept and one.run not in read]
