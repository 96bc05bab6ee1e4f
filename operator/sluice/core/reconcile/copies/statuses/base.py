"""Build the status of a copy of a stream or a scope, or of an archive's run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from sluice.api.status.common import (
    Attempt,
    ConditionType,
    Failure,
    ObjectRef,
    ProgressStatus,
)
from sluice.core.copy.plan import origin
from sluice.core.reconcile.copies.hooks import standing
from sluice.core.reconcile.copies.object_names import plan_name
from sluice.core.reconcile.copies.seen import recorded
from sluice.core.reconcile.copies.statuses import table
from sluice.core.reconcile.shared import conditions
from sluice.core.reconcile.shared.conditions import Saying
from sluice.core.reconcile.shared.jobs import job_name
from sluice.core.reconcile.shared.verdict import gave_up, in_a_row, judge
from sluice.core.values import text
from sluice.core.values.trouble import sentence

if TYPE_CHECKING:
    from datetime import datetime

    from sluice.api.status.common import CopyingStatus, HookStatus
    from sluice.core.reconcile.copies.actions import Action
    from sluice.core.reconcile.copies.hooks.standing import Point
    from sluice.core.reconcile.copies.seen import CopySeen
    from sluice.core.reconcile.copies.world import Reading, World
    from sluice.core.reconcile.shared.conditions import Tri
    from sluice.core.reconcile.shared.jobs import JobSeen
    from sluice.core.reconcile.shared.verdict import Verdict
    from sluice.core.values.trouble import Trouble
    from sluice.core.workloads.answers import Planned
    from sluice.core.workloads.plan import Plan


class CopyStatus(ABC):
    """Builder of a copy's next status, with a subclass for each kind.

    Args:
        copy: the copy, with its present status.
        now: the time.

    Attributes:
        work: the verb for what the driver does with bytes.
        there: the participle for bytes that it has moved, before all are moved.
        comparing: message once all bytes are moved.
        published: message once all of them can be read in the target.
        dropping: message while the resource is deleted.
        undropped: message while that fails.
    """

    work: ClassVar[str] = "copy"
    there: ClassVar[str] = "staged"
    comparing: ClassVar[str] = "All bytes are staged; they are compared and published."
    published: ClassVar[str] = "All bytes are verified and published; the driver tidies."
    dropping: ClassVar[str] = "What was staged is being dropped."
    undropped: ClassVar[str] = "What was staged cannot be dropped yet."

    def __init__(self, copy: CopySeen, now: datetime) -> None:
        self._copy = copy
        self._now = now
        self.value: CopyingStatus = copy.status.model_copy(
            update={
                "copy_id": copy.copy_id,
                "source": origin([table.place(one) for _, one in copy.spec.origins]),
                "target": table.place(copy.spec.goal[1]),
                "last_handled_requested_at": (
                    copy.requested_at or copy.status.last_handled_requested_at
                ),
            }
        )

    @abstractmethod
    def unpublished(self, world: World) -> Action | None:
        """Give the action that has to precede the report of the copy's end; None if none has."""

    @abstractmethod
    def over(self, world: World) -> CopyingStatus:
        """Report the copy's end. Positions and results are published by then."""

    @abstractmethod
    def _of_run(self) -> dict[str, Any]:
        """Give the fields that belong to one run, with the values that they have before a run."""

    @abstractmethod
    def _of_plan(self, plan: Plan) -> dict[str, Any]:
        """Give the fields that follow from a plan."""

    @abstractmethod
    def _work(self, plan: Plan) -> str:
        """Describe the work of a plan, in a few words."""

    @abstractmethod
    def _so_far(self) -> str:
        """Describe the progress, in a sentence."""

    @abstractmethod
    def _copied(self) -> str:
        """Name the complete part, in a sentence after a blank; empty if there is none."""

    def _pause(self, reading: Reading | None) -> str:  # noqa: ARG002 - bytes may come in batches
        """Say that no bytes come, in a sentence after a blank; empty if they come."""
        return ""

    def _moving(self, message: str) -> Saying:
        """Give reason and message while bytes are moved."""
        return self._staging(Saying("Copying", message))

    def _staging(self, saying: Saying) -> Saying:
        """Give reason and message until all bytes of the plan are readable."""
        return saying

    @abstractmethod
    def _take(self, reading: Reading) -> dict[str, Any]:
        """Give the fields that a reading changes besides the bytes. A change counts as progress."""

    def unchanged(self) -> CopyingStatus:
        """Keep the conditions, for the present generation."""
        kept: dict[ConditionType, tuple[Tri, Saying]] = {
            kind: (found.status, Saying(found.reason, found.message))
            for kind in ConditionType
            if kind is not ConditionType.HOOKS
            and (found := self._copy.status.condition(kind)) is not None
        }
        return self._say(kept)

    def hook(self, point: Point, hook: HookStatus) -> CopyingStatus:
        """Report how a hook stands, while the copy waits for it or goes on after it."""
        self._stand()
        # No failure stands any more, or the copy would count as given up.
        self._set(retry_time=None, completion_time=None, last_failure=None)
        self.note_hook(point, hook)
        return self._say(conditions.working(standing.said(point, hook)))

    def note_hook(self, point: Point, hook: HookStatus) -> None:
        """Write how a hook stands."""
        self._set(**standing.with_hooks(self.value, **{point: hook}))

    def forget_hooks(self, *, asked: bool) -> None:
        """Let hooks run again, as `standing.forgotten` says."""
        self._set(**standing.forgotten(self.value, asked=asked))

    def given_up(self) -> CopyingStatus:
        """Report the final failure again, if other conditions have replaced it."""
        failure = self.value.last_failure
        if failure is None or self._copy.status.condition(ConditionType.STALLED) is not None:
            return self.unchanged()
        said = sentence(failure.message, field=failure.field, remedy=failure.remedy or "")
        return self._say(conditions.stalled(Saying(failure.reason, said)))

    def forget_failures(self) -> None:
        """Start from zero failures after a change of the spec or a request for another run."""
        changes: dict[str, Any] = {"failures": 0, "retry_time": None, "last_failure": None}
        changes |= {"completion_time": None, "duration": None}
        if self._copy.asked:
            changes |= {"plan_hash": None, "start_time": None, **self._of_run()}
        self._set(**changes)

    def planned(self, planned: Planned) -> None:
        """Write what follows from the plan, if it is not the one of the status."""
        plan = planned.plan
        self._set(plan_digest=plan.digest)
        if self.value.plan_hash == plan.hash:
            return
        self._set(
            plan_ref=ObjectRef(name=plan_name(self._copy.name, self._copy.uid)),
            plan_hash=plan.hash,
            progress=ProgressStatus(
                total_bytes=plan.bytes,
                size=table.size(plan.bytes),
                events=plan.events,
                summary="0%",
                time=self._now,
            ),
            **self._of_plan(plan),
        )

    def starting_attempt(self, number: int, planned: Planned, host: str | None) -> CopyingStatus:
        """Announce an attempt.

        Args:
            number: its number.
            planned: the plan.
            host: the namespace of its Job, if that is not the copy's. It is written down before
                anything is made there, and stays for as long as the copy may have something there.
        """
        name = job_name(self._copy.uid, number)
        before = self.value.driver_namespace if self._copy.finalizer else None
        self._set(
            driver_namespace=host or before,
            attempts=number,
            job_ref=ObjectRef(name=name),
            start_time=self.value.start_time or self._now,
            completion_time=None,
            duration=None,
            retry_time=None,
        )
        if not any(entry.attempt == number for entry in self.value.history):
            entry = Attempt(attempt=number, job=name, start_time=self._now)
            self._set(history=(*self.value.history, entry)[-10:])
        again = f" (attempt {number})" if number > 1 else ""
        said = Saying(
            "Starting", f"The driver starts{again}; {self._work(planned.plan)} to {self.work}."
        )
        return self._say(conditions.working(said))

    def starting(self, job: JobSeen) -> CopyingStatus:
        """Report that the driver's pod does not run yet."""
        if job.trouble is not None:
            return self.waiting(job.trouble)
        said = Saying("Starting", f"The driver of attempt {job.attempt} starts.")
        return self._say(conditions.working(said))

    def stopping(self) -> CopyingStatus:
        """Report that the driver is being stopped."""
        self._stand()
        said = Saying("Stopping", f"The driver is being stopped; what is {self.there} stays.")
        return self._say(conditions.working(said))

    def waiting(self, trouble: Trouble) -> CopyingStatus:
        """Report that the copy waits for something around it."""
        self._stand()
        return self._say(conditions.working(Saying(trouble.reason, str(trouble))))

    def refused(self, trouble: Trouble) -> CopyingStatus:
        """Report that a person has to correct something. Staged bytes stay."""
        self._stand()
        said = Saying(trouble.reason, f"{trouble}{self._copied()}")
        return self._say(conditions.stalled(said))

    def working_on(self, world: World, trouble: Trouble | None) -> CopyingStatus:
        """Report that the driver runs; `trouble` is why its progress cannot be read."""
        self.measure(world)
        self._set(start_time=self.value.start_time or self._now)
        if world.reading is None:
            self._stand()
        progress = self.value.progress
        if trouble is not None:
            said = self._moving(f"The driver runs. Its progress cannot be seen: {trouble}")
        elif world.reading is not None and world.reading.progress.published:
            said = self._staging(Saying("Publishing", self.published))
        elif progress is not None and 0 < progress.total_bytes <= progress.bytes:
            said = self._staging(Saying("Verifying", f"{self.comparing}{self._copied()}"))
        else:
            again = f" Attempt {self.value.attempts}." if self.value.attempts > 1 else ""
            said = self._moving(f"{self._so_far()}{self._pause(world.reading)}{again}")
        return self._say(conditions.working(said))

    def measure(self, world: World) -> None:
        """Take in a reading of the progress. New progress resets the count of failures."""
        if world.reading is None:
            return
        before = self.value.progress
        progress = table.progress(world.reading, before, self._now)
        more = self._take(world.reading)
        if before is not None and not more and table.says_the_same(progress, before):
            return  # a new time alone is not worth a write
        if before is not None and (more or progress.bytes > before.bytes):
            self._set(failures=0)
        self._set(progress=progress, **more)

    def end(self, job: JobSeen, *, outcome: str, reason: str | None = None) -> None:
        """Write into the history how an attempt ended."""
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
        """Write a failure, and decide what follows from it.

        Args:
            trouble: the failure.
            job: the attempt that failed; None if the failure keeps an attempt from beginning.
        """
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
        if verdict.final:
            said = Saying(trouble.reason, f"{trouble}{self._copied()}")
            if job is not None and gave_up(trouble, verdict):
                times = "a failure" if failures == 1 else f"{failures} failures"
                message = (
                    f"Gave up after {times} without progress.{self._copied()} {trouble} To try "
                    "again, annotate the resource with sluice.dev/requestedAt."
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
        """Estimate how often in a row this failure has kept an attempt from beginning."""
        last = self.value.last_failure
        if last is None or last.time is None or last.attempt is not None:
            return 1
        if last.reason != trouble.reason:
            return 1
        return in_a_row(trouble, (self._now - last.time).total_seconds())

    def suspended(self, world: World) -> CopyingStatus:
        """Report that the copy is suspended."""
        self._set(start_time=None)
        self._stand()
        staged = f"{self._copied()}{self._staged()}"
        plan = " The plan is written." if self.value.plan_hash or world.plan else ""
        said = Saying("Suspended", f"spec.suspend is true.{plan}{staged} Set it to false to go on.")
        return self._say(conditions.suspended(said))

    def _staged(self) -> str:
        """Name the bytes that stay, in a sentence after a blank; empty if there are none."""
        progress = self.value.progress
        if progress is None or not progress.bytes:
            return ""
        done, total = text.size(progress.bytes), text.size(progress.total_bytes)
        return f" {done} of {total} are {self.there} and stay."

    def deleting(self, saying: Saying) -> CopyingStatus:
        """Report that the copy is being deleted."""
        return self._say(conditions.working(saying))

    def _took(self, end: datetime) -> str | None:
        """Tell how long a copy took that ended then; None if it needed no attempt."""
        begin = self.value.start_time
        return None if begin is None else text.duration(max(0.0, (end - begin).total_seconds()))

    def _open(self, world: World) -> JobSeen | None:
        """Return the latest attempt's Job, if the status does not have its end yet."""
        job = world.job
        return None if job is None or recorded(self._copy, job) else job

    def _stand(self) -> None:
        """Clear the speed and the time left, since no bytes are moved."""
        progress = self.value.progress
        if progress is not None:
            still = {"bytes_per_second": None, "rate": None, "eta_seconds": None}
            self._set(progress=progress.model_copy(update=still))

    def next_attempt(self) -> int:
        """Give the number of the next attempt: the latest number, until that attempt has ended."""
        number = self.value.attempts
        over = any(entry.attempt == number and entry.outcome for entry in self.value.history)
        return max(1, number + over)

    def _say(self, wanted: dict[ConditionType, tuple[Tri, Saying]]) -> CopyingStatus:
        hooked = standing.condition(self._copy, self.value)
        if hooked is not None:
            wanted = wanted | {ConditionType.HOOKS: hooked}
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
