"""Build the status of a StreamCopy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sluice.api.status.common import GapStatus, ObjectRef, ProgressStatus, VerificationStatus
from sluice.core.copy.plan import origin
from sluice.core.reconcile.copies.actions import WritePositions
from sluice.core.reconcile.copies.object_names import positions_name
from sluice.core.reconcile.copies.statuses.base import CopyStatus
from sluice.core.reconcile.shared import conditions
from sluice.core.reconcile.shared.conditions import Saying
from sluice.core.values import text
from sluice.core.workloads.answers import Complete

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sluice.api.kinds.streamcopy import StreamCopySpec
    from sluice.api.status.common import CopyingStatus
    from sluice.core.copy.plan import StreamPlan
    from sluice.core.reconcile.copies.actions import Action
    from sluice.core.reconcile.copies.seen import CopySeen
    from sluice.core.reconcile.copies.world import Reading, World
    from sluice.core.workloads.answers import CopyGap
    from sluice.core.workloads.plan import Plan


class StreamStatus(CopyStatus):
    """Builder of the next status of a StreamCopy.

    Args:
        copy: the copy, with its present status.
        spec: its spec.
        now: the time.
    """

    def __init__(self, copy: CopySeen, spec: StreamCopySpec, now: datetime) -> None:
        self._spec = spec
        super().__init__(copy, now)

    def unpublished(self, world: World) -> Action | None:
        """Publish the position map, unless the ConfigMap already has the target's."""
        wanted, written = _whole(world).positions, world.positions
        if wanted is None or (written is not None and written.has(wanted)):
            return None
        return WritePositions(wanted)

    def over(self, world: World) -> CopyingStatus:
        """Report that the target is complete."""
        complete = _whole(world)
        job, attempt, before = world.job, self._open(world), self.value.progress
        if attempt is not None:
            self.end(attempt, outcome="Succeeded")
        ended = job.ended if job and job.ended else self._now
        size = (
            complete.bytes if complete.bytes is not None else (before.total_bytes if before else 0)
        )
        self._set(
            failures=0,
            retry_time=None,
            last_failure=None,
            position_map_ref=(
                None
                if world.positions is None
                else ObjectRef(name=positions_name(self._copy.name, self._copy.uid))
            ),
            completion_time=ended,
            duration=self._took(ended),
            progress=ProgressStatus(
                bytes=size,
                total_bytes=size,
                size=text.size(size),
                events=complete.events,
                percent=100,
                summary="100%",
                time=self._now,
            ),
            gaps=tuple(
                GapStatus(source=gap.source, segment_id=gap.segment, from_=gap.begin, to=gap.end)
                for gap in complete.gaps
            )
            or None,
            verification=VerificationStatus(
                digest=complete.digest,
                bytes=size,
                events=complete.events,
                segments=complete.segments or 0,
                time=self._now,
            ),
        )
        whole = self._result(complete, size)
        said = Saying("Copied", whole)
        if complete.gaps:
            said = Saying("CopiedWithGaps", f"{whole} {_without(complete.gaps)}")
        verified = Saying(
            "DigestsMatch",
            f"What is published was read again and compared before; SHA-256 {complete.digest}.",
        )
        compared = verified if complete.verified else None
        return self._say(conditions.succeeded(self._ended_as(said), verified=compared))

    def _ended_as(self, said: Saying) -> Saying:
        """Return the reason of a good end."""
        return said

    def _result(self, complete: Complete, size: int) -> str:
        """Describe what the copy has made, in sentences."""
        spec, events = self._spec, complete.events
        name = f"{spec.target.scope}/{spec.target.stream}"
        sealed = spec.target.seal_when_done
        counted = "" if events is None else f"{text.counted(events, 'event')}, "
        amount = f"{counted}{text.size(size)}"
        if complete.appended:
            held = "" if complete.held is None else f", which then held {text.size(complete.held)}"
            result = f"{amount} were appended to {name}{held}.{' It is sealed.' if sealed else ''}"
        else:
            result = f"{name} is whole{' and sealed' if sealed else ''}: {amount}."
        if events == 0 and not size:
            result += f" {text.EMPTY}"
        if spec.source_on_complete == "Delete":
            return (
                f"{result} The source {origin([one.title for _, one in spec.origins])} was deleted."
            )
        return result

    def _of_run(self) -> dict[str, Any]:
        return {"verification": None, "position_map_ref": None}

    def _of_plan(self, plan: Plan) -> dict[str, Any]:
        if not plan.streams:  # from a volume: only the driver can plan
            return {"start_cut": None, "end_cut": None}
        (stream,) = plan.streams
        return {"start_cut": _cut(stream, end=False), "end_cut": _cut(stream, end=True)}

    def _work(self, plan: Plan) -> str:
        return text.size(plan.bytes) if plan.streams else "what the archive holds"

    def _so_far(self) -> str:
        progress = self.value.progress
        total = text.size(progress.total_bytes) if progress else "?"
        done = text.size(progress.bytes) if progress else "?"
        return f"{done} of {total} are staged."

    def _pause(self, reading: Reading | None) -> str:
        if reading is None or not reading.pace.waits:
            return ""
        pace, since = reading.pace, f" None came for {reading.pace.patience:.0f} s"
        if self._spec.limits.bytes_per_second is None:
            return (
                f"{since}: a store does not answer, or delays writers, as it does while its cache"
                " is full."
            )
        # A limit makes bytes come in lumps, and a low one takes its time to the first of them.
        return "" if pace.rhythm is None else f"{since}."

    def _copied(self) -> str:
        return ""

    def _take(self, reading: Reading) -> dict[str, Any]:  # noqa: ARG002 - bytes are all there is
        return {}


def _whole(world: World) -> Complete:
    assert isinstance(world.answer, Complete)  # noqa: S101 - for the type checker
    return world.answer


def _without(gaps: Sequence[CopyGap]) -> str:
    """Describe the bytes that the sources had lost, in a sentence."""
    first, *rest = sorted(gaps, key=lambda gap: gap.end is None)
    verb = "is" if len(rest) == 1 else "are"
    more = f", and {text.counted(len(rest), 'more gap')} {verb} in status.gaps" if rest else ""
    if first.end is None:
        return f"{text.lost_behind(first.segment, first.begin).removesuffix('.')}{more}."
    lost = text.size(sum(gap.length for gap in gaps))
    return (
        f"The source was truncated before {lost} were read: of segment {first.segment}, offsets "
        f"{first.begin} to {first.end} are not in it{more}."
    )


def _cut(stream: StreamPlan, *, end: bool) -> str:
    """Write the offsets by segment at which a copy begins, or ends."""
    active = stream.active[-1 if end else 0]
    segments = [stream.segments[place] for place in active]
    return ",".join(f"{s.id}={s.end if end else s.start}" for s in segments)
