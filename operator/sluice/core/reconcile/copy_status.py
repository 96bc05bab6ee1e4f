"""A StreamCopy's status: what is written for each situation."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from sluice.api.status import (
    Attempt,
    ConditionType,
    Failure,
    ObjectRef,
    Progress,
    Verification,
)
from sluice.core import text
from sluice.core.plan import origin
from sluice.core.reconcile import conditions
from sluice.core.reconcile.conditions import Saying
from sluice.core.reconcile.verdict import in_a_row, judge
from sluice.core.trouble import sentence

if TYPE_CHECKING:
    from datetime import datetime

    from sluice.api.status import StreamCopyStatus
    from sluice.core.plan import StreamPlan
    from sluice.core.reconcile.conditions import Tri
    from sluice.core.reconcile.copy_seen import CopySeen
    from sluice.core.reconcile.verdict import Verdict
    from sluice.core.reconcile.world import Complete, JobSeen, Planned, Reading, World
    from sluice.core.trouble import Trouble


READ_AGAIN: Final = timedelta(seconds=30)
"""After which a progress that has not changed is written again, to say that it was read."""


class CopyStatus:
    """Builds the next status from the one that stands.

    Args:
        copy: the copy, with the status that stands.
        now: the time.
    """

    def __init__(self, copy: CopySeen, now: datetime) -> None:
        self._copy = copy
        self._now = now
        self.value: StreamCopyStatus = copy.status.model_copy(
            update={
                "copy_id": copy.copy_id,
                "source": origin([source.stream for _, source in copy.spec.origins]),
                "last_handled_requested_at": (
                    copy.requested_at or copy.status.last_handled_requested_at
                ),
            }
        )

    def unchanged(self) -> StreamCopyStatus:
        """The status as it stands, said of the present generation."""
        standing = {
            kind: (found.status, Saying(found.reason, found.message))
            for kind in ConditionType
            if (found := self._copy.status.condition(kind)) is not None
        }
        return self._say(standing)

    def given_up(self) -> StreamCopyStatus:
        """It failed for good: so it is said, whatever has been said meanwhile."""
        failure = self.value.last_failure
        if failure is None or self._copy.status.condition(ConditionType.STALLED) is not None:
            return self.unchanged()
        said = sentence(failure.message, field=failure.field, remedy=failure.remedy or "")
        return self._say(conditions.stalled(Saying(failure.reason, said)))

    def forget_failures(self) -> None:
        """Somebody changed the spec or asked for another run: it counts from the beginning."""
        changes: dict[str, Any] = {"failures": 0, "retry_time": None, "last_failure": None}
        changes |= {"completion_time": None}
        if self._copy.asked:
            changes |= {"plan_hash": None, "verification": None, "start_time": None}
            changes |= {"position_map_ref": None}
        self._set(**changes)

    def planned(self, planned: Planned) -> None:
        """There is a plan."""
        stream = planned.plan.streams[0]
        if self.value.plan_hash == planned.plan.hash:
            return
        self._set(
            plan_ref=ObjectRef(name=plan_name(self._copy.name, self._copy.uid)),
            plan_hash=planned.plan.hash,
            start_cut=_cut(stream, end=False),
            end_cut=_cut(stream, end=True),
            progress=Progress(
                total_bytes=stream.bytes,
                events=stream.events,
                summary="0%",
                time=self._now,
            ),
        )

    def starting_attempt(self, number: int, planned: Planned) -> StreamCopyStatus:
        """An attempt is about to begin."""
        name = job_name(self._copy.uid, number)
        self._set(
            attempts=number,
            job_ref=ObjectRef(name=name),
            start_time=self.value.start_time or self._now,
            completion_time=None,
            retry_time=None,
        )
        if not any(entry.attempt == number for entry in self.value.history):
            entry = Attempt(attempt=number, job=name, start_time=self._now)
            self._set(history=(*self.value.history, entry)[-10:])
        size = text.size(planned.plan.bytes)
        again = f" (attempt {number})" if number > 1 else ""
        said = Saying("Starting", f"The driver starts{again}; {size} to copy.")
        return self._say(conditions.working(said))

    def starting(self, job: JobSeen) -> StreamCopyStatus:
        """The driver's pod does not run yet."""
        if job.trouble is not None:
            return self.waiting(job.trouble)
        said = Saying("Starting", f"The driver of attempt {job.attempt} starts.")
        return self._say(conditions.working(said))

    def stopping(self) -> StreamCopyStatus:
        """The driver is being stopped."""
        said = Saying("Stopping", "The driver is being stopped; what is staged stays.")
        return self._say(conditions.working(said))

    def waiting(self, trouble: Trouble) -> StreamCopyStatus:
        """Nothing can be done before something else gets right."""
        return self._say(conditions.working(Saying(trouble.reason, str(trouble))))

    def working_on(self, world: World, trouble: Trouble | None) -> StreamCopyStatus:
        """The driver runs; `trouble` is why its progress cannot be seen."""
        self.measure(world)
        self._set(start_time=self.value.start_time or self._now)
        progress = self.value.progress
        if trouble is not None:
            said = Saying("Copying", f"The driver runs. Its progress cannot be seen: {trouble}")
        elif world.reading is not None and world.reading.progress.published:
            said = Saying("Publishing", "All bytes are verified and published; the driver tidies.")
        elif progress is not None and 0 < progress.total_bytes <= progress.bytes:
            said = Saying("Verifying", "All bytes are staged; they are compared and published.")
        else:
            total = text.size(progress.total_bytes) if progress else "?"
            done = text.size(progress.bytes) if progress else "?"
            again = f" Attempt {self.value.attempts}." if self.value.attempts > 1 else ""
            said = Saying("Copying", f"{done} of {total} are staged.{again}")
        return self._say(conditions.working(said))

    def measure(self, world: World) -> None:
        """Take in a reading of the progress. Progress makes failures of before forgotten."""
        if world.reading is None:
            return
        before = self.value.progress
        progress = _progress(world.reading, before, self._now)
        if before is not None and _says_the_same(progress, before):
            return  # a status that only tells the time is a write for nobody
        if before is not None and progress.bytes > before.bytes:
            self._set(failures=0)
        self._set(progress=progress)

    def end(self, job: JobSeen, *, outcome: str, reason: str | None = None) -> None:
        """Write down how an attempt ended."""
        ended = Attempt(
            attempt=job.attempt,
            job=job.name,
            start_time=job.started,
            end_time=job.ended or self._now,
            outcome=outcome,
            reason=reason,
        )
        rest = [entry for entry in self.value.history if entry.attempt != job.attempt]
        history = sorted([*rest, ended], key=lambda entry: entry.attempt)[-10:]
        self._set(history=tuple(history), attempts=max(self.value.attempts, job.attempt))

    def fail(self, trouble: Trouble, job: JobSeen | None) -> Verdict:
        """Write a failure down, and what follows from it."""
        if job is not None:
            self.end(job, outcome="Failed", reason=trouble.reason)
            failures = self.value.failures + 1
            verdict = judge(trouble, failures=failures, limit=self._copy.spec.backoff_limit)
        else:
            failures = self.value.failures
            verdict = judge(trouble, failures=self._row(trouble), limit=None)
        self._stand()
        at = None if verdict.wait is None else self._now + timedelta(seconds=verdict.wait)
        self._set(
            failures=failures,
            retry_time=at,
            last_failure=Failure(
                reason=trouble.reason,
                category=trouble.category.value,
                message=trouble.message,
                field=trouble.field,
                remedy=trouble.remedy,
                attempt=job.attempt if job else None,
                time=self._now,
            ),
        )
        said = Saying(trouble.reason, str(trouble))
        if verdict.final:
            if trouble.retryable:
                times = "a failure" if failures == 1 else f"{failures} failures"
                message = (
                    f"Gave up after {times} without progress. {trouble} To try again, annotate the "
                    "copy with sluice.dev/requestedAt."
                )
                said = Saying(trouble.reason, message)
            self._set(completion_time=self._now)
            self._say(conditions.stalled(said))
        else:
            seconds = f"{verdict.wait or 0:.0f} s"
            what = "It is tried again" if job is None else f"Attempt {self.next_attempt()} begins"
            message = f"{trouble} {what} in {seconds}."
            self._say(conditions.working(Saying(trouble.reason, message)))
        return verdict

    def _row(self, trouble: Trouble) -> int:
        """How often in a row this has kept an attempt from beginning, as far as times tell."""
        last = self.value.last_failure
        if last is None or last.time is None or last.attempt is not None:
            return 1
        if last.reason != trouble.reason:
            return 1
        return in_a_row(trouble, (self._now - last.time).total_seconds())

    def suspended(self, world: World) -> StreamCopyStatus:
        """Nothing runs because somebody wants it so."""
        self._set(start_time=None)
        self._stand()
        progress = self.value.progress
        done = text.size(progress.bytes) if progress else "0 B"
        total = f" of {text.size(progress.total_bytes)}" if progress else ""
        staged = f" {done}{total} are staged and stay." if progress and progress.bytes else ""
        plan = " The plan is written." if self.value.plan_hash or world.plan else ""
        said = Saying("Suspended", f"spec.suspend is true.{plan}{staged} Set it to false to go on.")
        return self._say(conditions.suspended(said))

    def deleting(self, saying: Saying) -> StreamCopyStatus:
        """The copy is being deleted."""
        return self._say(conditions.working(saying))

    def completed(self, world: World, complete: Complete) -> StreamCopyStatus:
        """The target is whole."""
        job = world.job
        if job is not None and not any(
            e.attempt == job.attempt and e.outcome for e in self.value.history
        ):
            self.end(job, outcome="Succeeded")
        before = self.value.progress
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
            completion_time=(job.ended if job and job.ended else self._now),
            progress=Progress(
                bytes=size,
                total_bytes=size,
                events=complete.events,
                percent=100,
                summary="100%",
                time=self._now,
            ),
            verification=Verification(
                digest=complete.digest,
                bytes=size,
                events=complete.events,
                segments=complete.segments or 0,
                time=self._now,
            ),
        )
        target = self._copy.spec.target
        sealed = " and sealed" if target.seal_when_done else ""
        events = "" if complete.events is None else f"{complete.events:,} events, "
        said = Saying(
            "Copied", f"{target.scope}/{target.stream} is whole{sealed}: {events}{text.size(size)}."
        )
        verified = Saying(
            "DigestsMatch",
            f"What is published was read again and compared before; SHA-256 {complete.digest}.",
        )
        return self._say(
            conditions.succeeded(said, verified=verified if complete.verified else None)
        )

    def _stand(self) -> None:
        """Nothing moves: a speed and the time left would be those of before."""
        progress = self.value.progress
        if progress is not None:
            still = {"bytes_per_second": None, "rate": None, "eta_seconds": None}
            self._set(progress=progress.model_copy(update=still))

    def next_attempt(self) -> int:
        """The number of the attempt to begin: the latest one's, until its end is written down."""
        number = self.value.attempts
        over = any(entry.attempt == number and entry.outcome for entry in self.value.history)
        return max(1, number + over)

    def _say(self, wanted: dict[ConditionType, tuple[Tri, Saying]]) -> StreamCopyStatus:
        self._set(
            observed_generation=self._copy.generation,
            conditions=conditions.merge(
                self._copy.status.conditions,
                wanted,
                generation=self._copy.generation,
                now=self._now,
            ),
        )
        return self.value

    def _set(self, **changes: Any) -> None:
        self.value = self.value.model_copy(update=changes)


def plan_name(name: str, uid: str) -> str:
    """The name of a copy's plan ConfigMap."""
    return f"{name[:40].rstrip('-.')}-plan-{text.short_hash(uid)}"


def positions_name(name: str, uid: str) -> str:
    """The name of the ConfigMap with a copy's map of positions."""
    return f"{name[:40].rstrip('-.')}-positions-{text.short_hash(uid)}"


def job_name(uid: str, attempt: int) -> str:
    """The name of an attempt's Job: two operators mean the same one."""
    return f"sluice-{text.short_hash(uid)}-{attempt}"


def _cut(stream: StreamPlan, *, end: bool) -> str:
    """Offsets by segment."""
    active = stream.active[-1 if end else 0]
    segments = [stream.segments[place] for place in active]
    return ",".join(f"{s.id}={s.end if end else s.start}" for s in segments)


def _says_the_same(progress: Progress, before: Progress) -> bool:
    """Whether a reading says nothing but the time that was not said a moment ago."""
    if before.time is None or progress.time is None or progress.time - before.time >= READ_AGAIN:
        return False
    return progress.model_copy(update={"time": before.time}) == before


def _progress(reading: Reading, before: Progress | None, now: datetime) -> Progress:
    done, total = reading.progress.bytes, reading.progress.total
    # Below 100 until the target is whole: staged is not done.
    percent = min(99, 100 * done // total) if total else 0
    rate, eta = reading.pace
    return Progress(
        bytes=done,
        total_bytes=total,
        events=before.events if before else None,
        percent=percent,
        summary=f"{percent}%",
        bytes_per_second=round(rate),
        rate=text.rate(rate),
        eta_seconds=None if eta is None else round(eta),
        time=now,
    )
