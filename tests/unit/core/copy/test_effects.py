"""Known and unknown effects of a driver's steps."""

from __future__ import annotations

import pytest

from sluice.core.copy import effects
from sluice.core.copy.append_progress import Opened, Roll
from sluice.core.copy.journal import Journal
from sluice.core.copy.observed import Observed, SeenStaging
from sluice.core.copy.steps import MakeTarget, Publish, Seal, Stage, Transfer, Verify
from support.engine.plans import segment_plan, stream_plan

PLAN = stream_plan(segment_plan(100))
NOTHING = SeenStaging((None,), stitched=None, verified=None, published=None, target=None)
STAGE = Stage(((0, PLAN.segments[0].parts[0]),))


def test_staging_that_was_made_is_empty() -> None:
    """After Stage the driver knows the new segments, and may transfer without a look."""
    journal = Journal(PLAN, (0,))
    known = effects.after(STAGE, Observed(journal, None, (NOTHING,)), PLAN, journal, "")
    assert known is not None
    (info,) = known.segments[0].parts
    assert info is not None
    assert info.length == 0


@pytest.mark.parametrize("roll", [Roll(attempt=1), Roll(aborted=True), Roll(decided=True)])
def test_a_step_of_a_copy_that_another_driver_has_changed_is_not_known(roll: Roll) -> None:
    """If the journal has a record of another driver, the driver has to look at the stores."""
    seen = Observed(Journal(PLAN, (0,)), None, (NOTHING,))
    assert effects.after(STAGE, seen, PLAN, Journal(PLAN, (0,), roll=roll), "") is None


def test_open_transactions_are_looked_at_after_each_step() -> None:
    """The driver looks after each step, because each look renews the transactions' leases."""
    journal = Journal(PLAN, (0,), roll=Roll(transactions={0: Opened("ab", (0,))}))
    assert effects.after(STAGE, Observed(journal, None, (NOTHING,)), PLAN, journal, "") is None


def test_nothing_is_published_without_a_look() -> None:
    """The driver also looks before it seals a target, or makes one after another step."""
    for step in (STAGE, Transfer(()), Verify((0,)), Publish((0,))):
        for following in (Publish((0,)), Seal(), MakeTarget()):
            assert not effects.follows(step, following)
