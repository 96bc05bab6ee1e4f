from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.api.status.common import Condition, ConditionType
from sluice.core.reconcile.shared import conditions
from sluice.core.reconcile.shared.conditions import Saying, Tri, merge
from support.reconcile.copies import NOW

SAYING = Saying("Because", "So it is.")
OTHER = Saying("Otherwise", "So it is not.")
LATER = NOW + timedelta(minutes=1)
TYPES = st.sampled_from(ConditionType)
TRI = st.sampled_from(["True", "False", "Unknown"])
WANTED = st.dictionaries(TYPES, st.tuples(TRI, st.sampled_from([SAYING, OTHER])))


def standing(**status: Tri) -> tuple[Condition, ...]:
    """Return conditions that have stood since NOW."""
    return merge(
        (),
        {ConditionType(kind): (value, SAYING) for kind, value in status.items()},
        generation=1,
        now=NOW,
    )


def test_a_condition_that_stays_as_it_was_keeps_its_time() -> None:
    """Another reason or message is no transition."""
    before = standing(Ready="True")
    (now,) = merge(before, {ConditionType.READY: ("True", OTHER)}, generation=2, now=LATER)
    assert now.last_transition_time == NOW
    assert (now.reason, now.message, now.observed_generation) == (*OTHER, 2)


def test_a_condition_that_changes_gets_the_time() -> None:
    """The time belongs to its status, not to its reason."""
    before = standing(Ready="True")
    (now,) = merge(before, {ConditionType.READY: ("False", SAYING)}, generation=1, now=LATER)
    assert now.last_transition_time == LATER


def test_what_is_not_wanted_any_more_goes() -> None:
    """Reconciling and Stalled stand only while they hold."""
    before = standing(Ready="Unknown", Reconciling="True")
    after = merge(before, conditions.ready(SAYING), generation=1, now=LATER)
    assert [(found.type, found.status) for found in after] == [("Ready", "True")]


@given(before=WANTED, wanted=WANTED)
def test_merging_says_what_is_wanted_and_keeps_times(
    before: dict[ConditionType, tuple[Tri, Saying]], wanted: dict[ConditionType, tuple[Tri, Saying]]
) -> None:
    """Each type stands once, in one order, and has a new time exactly if its status is new."""
    old = merge((), before, generation=1, now=NOW)
    new = merge(old, wanted, generation=2, now=LATER)
    assert {found.type: (found.status, (found.reason, found.message)) for found in new} == wanted
    assert [found.type for found in new] == [kind for kind in ConditionType if kind in wanted]
    for found in new:
        kept = any((o.type, o.status) == (found.type, found.status) for o in old)
        assert (found.last_transition_time == NOW) == kept
    assert merge(new, wanted, generation=2, now=LATER + timedelta(days=1)) == new


@pytest.mark.parametrize(
    ("wanted", "verdict"),
    [
        (conditions.working(SAYING), "InProgress"),
        (conditions.working(SAYING, bounded=False), "InProgress"),
        (conditions.stalled(SAYING), "Failed"),
        (conditions.stalled(SAYING, bounded=False), "Failed"),
        (conditions.suspended(SAYING), "InProgress"),
        (conditions.ready(SAYING), "Current"),
        (conditions.succeeded(SAYING, verified=OTHER), "Current"),
        (conditions.succeeded(SAYING, verified=None), "Current"),
    ],
)
def test_tools_read_what_is_meant(
    wanted: dict[ConditionType, tuple[Tri, Saying]], verdict: str
) -> None:
    """By kstatus' rules each set of conditions has one meaning without contradiction."""
    said = {kind: status for kind, (status, _) in wanted.items()}
    assert not {ConditionType.RECONCILING, ConditionType.STALLED} <= said.keys()
    if said.get(ConditionType.RECONCILING) == "True":
        found = "InProgress"
    elif said.get(ConditionType.STALLED) == "True":
        found = "Failed"
    else:
        found = "Current" if said[ConditionType.READY] == "True" else "InProgress"
    assert found == verdict
    assert (said[ConditionType.READY] == "False") == (verdict == "Failed")


@pytest.mark.parametrize("status", ["working", "stalled", "suspended", "succeeded"])
def test_one_condition_has_the_sentence(status: str) -> None:
    """It is Ready. The others have the reason, and short messages that differ."""
    given = {"succeeded": lambda: conditions.succeeded(SAYING, verified=None)}
    found = given.get(status, lambda: getattr(conditions, status)(SAYING))()
    assert all(saying.reason == SAYING.reason for _, saying in found.values())
    messages = {kind: saying.message for kind, (_, saying) in found.items()}
    assert messages.pop(ConditionType.READY) == SAYING.message
    assert SAYING.message not in messages.values()
    assert len(set(messages.values())) == len(messages)
    assert all(0 < len(message) < 80 for message in messages.values())
