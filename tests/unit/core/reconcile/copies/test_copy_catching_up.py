"""A StreamCopy that is far behind its followed source: a driver catches up."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from sluice.api.status.common import Attempt
from sluice.core.follow.catching_up import FAR
from sluice.core.follow.lag import Age, Followed
from sluice.core.reconcile.copies.actions import DeleteJob
from sluice.core.reconcile.copies.decide import reconcile
from sluice.core.reconcile.shared.jobs import JobPhase
from support.reconcile.copies import after, job, later, message, reason, world
from support.reconcile.followed import LIVE, UP, follower, following, look, measured
from unit.core.reconcile.copies.test_copy_following import begins_follower, status

if TYPE_CHECKING:
    from sluice.core.reconcile.copies.seen import CopySeen

FAR_AWAY = UP._replace(lag_bytes=FAR + 1, lag=Age(61.0, certain=True))


def test_a_follower_that_stays_far_behind_is_replaced_by_a_driver_and_goes_on_after_it() -> None:
    """The history names the reason, and the condition has the driver's progress."""
    seen = following()
    decision = look(seen, 120, reading=measured(FAR_AWAY))
    assert DeleteJob(follower().name) in decision.actions
    seen = after(seen, decision)
    (first,) = status(seen.status).history
    assert (first.outcome, first.reason) == ("Replaced", "FarBehind")
    assert begins_follower(reconcile(seen, world(now=later(125), answer=LIVE))) == [False]
    seen = after(seen, reconcile(seen, world(now=later(125), answer=LIVE)))
    driver = job(2, JobPhase.RUNNING)
    catching = FAR_AWAY._replace(catching=(1 << 29, FAR))
    decision = look(seen, 140, jobs=(driver,), reading=measured(catching))
    assert reason(decision) == "CatchingUp"
    assert message(decision).startswith("537 MB of 1.1 GB are staged. ")
    seen = after(seen, decision)
    done = replace(driver, phase=JobPhase.SUCCEEDED, ended=later(150))
    decision = reconcile(seen, world(now=later(151), jobs=(done,), answer=LIVE))
    assert begins_follower(decision) == [True]


@pytest.mark.parametrize(
    ("follow", "seconds", "changes"),
    [
        (FAR_AWAY._replace(lag_bytes=FAR), 120, {}),
        (FAR_AWAY._replace(lag=Age(59.0, certain=True)), 120, {}),
        (FAR_AWAY, 59, {}),
        (FAR_AWAY._replace(stopped="Idle"), 120, {}),
        (FAR_AWAY, 120, {"limits": {"bytesPerSecond": "1Mi"}}),
        (FAR_AWAY, 120, {"cutover": "Drain"}),
        (FAR_AWAY, 120, {"stopWhen": {"bytes": "1Gi"}}),
    ],
    ids=["near", "not for long", "young", "ending", "limited", "cut over", "enough"],
)
def test_a_follower_stays(follow: Followed, seconds: float, changes: dict[str, object]) -> None:
    """It may be fast enough, a driver may be no faster, or the end may be near."""
    decision = look(following(**changes), seconds, reading=measured(follow))
    assert not any(isinstance(one, DeleteJob) for one in decision.actions)


def caught_up_by(*outcomes: tuple[str, str | None]) -> CopySeen:
    """Return a live copy with these earlier attempts."""
    seen = following()
    history = tuple(
        Attempt(attempt=number, job=f"job-{number}", outcome=outcome, reason=why)
        for number, (outcome, why) in enumerate(outcomes, start=1)
    )
    return replace(seen, status=status(seen.status).model_copy(update={"history": history}))


@pytest.mark.parametrize(
    ("outcomes", "begun", "by_driver"),
    [
        ([], False, False),
        ([], True, True),
        ([("Replaced", "FarBehind")], False, True),
        ([("Replaced", "FarBehind"), ("Failed", "DriverLost")], False, True),
        ([("Replaced", "FarBehind"), *[("Failed", "DriverLost")] * 3], True, False),
        ([("Replaced", "FarBehind"), ("Suspended", None)], True, True),
        ([("Replaced", "FarBehind"), ("Succeeded", "CameLive")], False, False),
        ([("Succeeded", "CameLive"), ("Failed", "DriverLost")], False, False),
    ],
)
def test_a_driver_goes_on_with_what_is_staged_until_three_have_failed(
    outcomes: list[tuple[str, str | None]], begun: object, by_driver: object
) -> None:
    """A follower would discard the bytes that a driver has staged, and runs without Spark."""
    live = replace(LIVE, catches_up=bool(begun))
    decision = reconcile(caught_up_by(*outcomes), world(now=later(4000), answer=live))
    assert begins_follower(decision) == [not by_driver]


def test_a_driver_that_does_not_start_is_a_failure_though_the_copy_is_live() -> None:
    """Otherwise no process would follow the source."""
    seen = caught_up_by(("Replaced", "FarBehind"))
    driver = replace(job(2, JobPhase.PENDING), started=later(100))
    decision = look(seen, 90 + 660, jobs=(driver,), reading=measured(FAR_AWAY))
    assert DeleteJob(driver.name) in decision.actions
    assert status(decision.status).history[-1].outcome == "Failed"


def test_soon_after_a_driver_a_follower_has_ten_minutes() -> None:
    """Otherwise driver and follower would take turns without end."""
    seen = caught_up_by(("Replaced", "FarBehind"), ("Succeeded", "CameLive"))
    one = replace(follower(3), started=later(100))
    for seconds, replaced in ((100 + 599, False), (100 + 600, True)):
        decision = look(seen, seconds, jobs=(one,), reading=measured(FAR_AWAY))
        assert (DeleteJob(one.name) in decision.actions) == replaced
