"""Build the status of a ScopeCopy that follows its streams."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Any, ClassVar

from sluice.api.status.common import ConditionType
from sluice.api.status.follow_status import (
    CutoverState,
    FollowStatus,
    ScopeCutoverStatus,
    ScopeFollowStatus,
    StreamLagStatus,
)
from sluice.api.status.scope_status import ScopeCopyStatus, StreamCounts
from sluice.core.follow.lag import FollowedStreams
from sluice.core.reconcile.copies.actions import TellStreams, WriteResults
from sluice.core.reconcile.copies.statuses.following import FollowingStatus, span
from sluice.core.reconcile.copies.statuses.results import results_hash
from sluice.core.reconcile.copies.statuses.scopes import NAMED, ScopeStatus, named
from sluice.core.reconcile.shared.conditions import Saying
from sluice.core.values import text
from sluice.errors import SourceNotFound

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sluice.api.status.common import CopyingStatus
    from sluice.core.follow.lag import Followed
    from sluice.core.reconcile.copies.actions import Action
    from sluice.core.reconcile.copies.world import Reading, World
    from sluice.core.reconcile.shared.conditions import Tri
    from sluice.core.reconcile.shared.jobs import JobSeen
    from sluice.core.scope.scope import ScopePlan, StreamResult


class FollowedScopeStatus(FollowingStatus, ScopeStatus):
    """Builder of the next status of a ScopeCopy that follows its streams.

    A stream that fails, or that is gone, takes nothing from the readiness of the others: it is
    named and counted, and an alert tells of it.
    """

    dropping: ClassVar[str] = (
        "What was staged is being dropped. Targets of streams that were followed stay as far as "
        "they have come."
    )
    compared: ClassVar[str] = (
        "All that was published of the streams that are followed, and what came until "
        "status.follow.provedTo, was read again and equals the sources."
    )
    sealed: ClassVar[str] = "Sources are sealed. "
    stays: ClassVar[str] = "The targets have {} and stay as they are."
    cutover: ClassVar[type[CutoverState]] = ScopeCutoverStatus
    at_rest: ClassVar[Mapping[str, Any]] = {
        **FollowingStatus.at_rest,
        "streams": 0,
        "coming": 0,
        "worst": (),
    }

    _streams = FollowedStreams()
    _results: tuple[StreamResult, ...] | None = None

    def followed(self, world: World, job: JobSeen) -> CopyingStatus:
        """Report how far the streams are followed; see FollowingStatus."""
        self._take_in(world.reading)
        return super().followed(world, job)

    def published_anew(self, world: World) -> tuple[Action, ...]:
        """Publish the streams again if others have joined, or if some have failed or ended."""
        results = self._results
        if results is None or world.results == results_hash(results):
            return ()
        return (WriteResults(results),)

    def failures_told(self) -> tuple[Action, ...]:
        """Tell of the streams that have failed since the last look."""
        before, after = (
            {one.stream for one in said.failed_streams} if isinstance(said, ScopeCopyStatus) else ()
            for said in (self._copy.status, self.value)
        )
        fresh = {*after} - {*before}
        said = _no_more([one for one in self._streams.failures if one.stream in fresh], len(fresh))
        return (TellStreams(Saying("StreamFailed", said)),) if said else ()

    def over(self, world: World) -> CopyingStatus:
        """Report the end: each target has all that its source had, or its stream has failed."""
        self._end_following()
        succeeded = super().over(world).condition(ConditionType.SUCCEEDED)
        if succeeded is not None and self._spec.cutover != "None":
            self._set(cutover=self._reached("Done"))
        return self.value

    def _measured(self, follow: Followed, job: JobSeen) -> FollowStatus:
        streams = self._streams
        gone = sum(
            one.trouble is not None and one.trouble.reason == SourceNotFound.__name__
            for one in streams.failures
        )
        return ScopeFollowStatus(
            **dict(super()._measured(follow, job)),
            streams=streams.followed,
            coming=streams.coming,
            joined=streams.joined,
            failed=streams.failed - gone,
            gone=gone,
            worst=tuple(
                StreamLagStatus(
                    stream=one.stream, lag_bytes=one.bytes, lag_seconds=ceil(one.seconds)
                )
                for one in streams.worst
            ),
        )

    def _beside(self) -> dict[str, Any]:
        streams = self._streams
        found = {"streams": self._counted(streams), "failed_streams": named(streams.failures)}
        if self._results is not None:
            found["result_refs"] = self._refs(self._results)
        return found

    def _counted(self, streams: FollowedStreams) -> StreamCounts:
        """Return the counts of streams while they are followed."""
        return StreamCounts(
            total=streams.total,
            copied=streams.ended,
            failed=streams.failed,
            left_out=self._standing.left_out,
            summary=f"{streams.followed + streams.ended}/{streams.total}",
        )

    def _state(self, follow: Followed, now: FollowStatus, job: JobSeen) -> tuple[Tri, Saying]:
        status, said = super()._state(follow, now, job)
        if said.reason == "Draining" and follow.sealed and not follow.lag_bytes:
            return status, Saying("Proving", f"{said.message} The rest is compared.")
        if said.reason == "Following" and self._streams.coming and not self._was_ready:
            return "Unknown", Saying("CatchingUp", said.message)
        return status, said

    def _is_sealed(self, follow: Followed) -> bool:
        return follow.sealed or self._streams.sealed > 0

    def _subject(self) -> tuple[str, ...]:
        return (_words(self._streams),)

    def _losses(self) -> str:
        said = _no_more(self._streams.failures, self._streams.failed)
        return f" {said}" if said else ""

    def _latest(self) -> str:
        worst = [
            f"{one.stream} ({text.size(one.bytes)}, {span(one.seconds)})"
            for one in self._streams.worst[:NAMED]
        ]
        return f" Behind most: {', '.join(worst)}." if worst else ""

    def _so_far(self) -> str:
        if not self._streams.total:
            return super()._so_far()
        progress = self.value.progress
        size = "" if progress is None else f"; {text.size(progress.bytes)} are there"
        return f"{_words(self._streams)}{size}.{self._losses()}"

    def _copied(self) -> str:
        """Name nothing: a copy that follows has no part that is complete before all is."""
        return ""

    def _take(self, reading: Reading) -> dict[str, Any]:
        self._take_in(reading)
        if not self._streams.total:
            return super()._take(reading)
        counted = self._counted(self._streams)
        return {} if counted == self._standing else {"streams": counted}

    def _take_in(self, reading: Reading | None) -> None:
        """Take in what a reading tells of the streams."""
        follow = None if reading is None else reading.progress.follow
        if follow is not None and follow.streams is not None:
            self._streams, self._results = follow.streams, follow.results

    def _how_far(self, scope: ScopePlan) -> str:  # noqa: ARG002 - they end together, as is wished
        return "Each was followed to its end."

    def _verified(self) -> Saying:
        return Saying(
            "DigestsMatch",
            "All bytes of each stream were read again and equal its source's; the digests are in "
            "the ConfigMaps that status.resultRefs names.",
        )

    def _of_run(self) -> dict[str, Any]:
        return super()._of_run() | {"follow": None, "cutover": None}


def _no_more(failures: Sequence[StreamResult], count: int) -> str:
    """Name streams that are followed no more, in a sentence; empty if there are none.

    Args:
        failures: the first of them, with the reasons.
        count: how many there are.
    """
    names = [f"{one.stream} ({one.trouble.reason})" for one in failures if one.trouble is not None]
    if not names:
        return ""
    shown = names[:NAMED]
    more = f" and {count - len(shown):,} more" if count > len(shown) else ""
    return f"Followed no more: {', '.join(shown)}{more}."


def _words(streams: FollowedStreams) -> str:
    """Tell how many streams are followed, are copied first, and have ended."""
    count = streams.followed
    parts = ["1 stream is followed" if count == 1 else f"{count:,} streams are followed"]
    for number, what in ((streams.coming, "copied first"), (streams.ended, "done")):
        if number:
            parts.append(f"{number:,} {'is' if number == 1 else 'are'} {what}")
    return ", ".join(parts)
