"""Every reason and error in the code is in the catalogue, and so on the page of conditions."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import gencatalogue
import sluice
from sluice import errors
from sluice.core.catalogue import (
    ABSTRACT,
    NORMAL,
    OF_COMMANDS,
    OUTCOMES,
    PAGE,
    FailureReason,
    anchor,
    failures,
    is_warning,
)
from sluice.core.reconcile.copies.actions import Abandon, Decision
from sluice.core.reconcile.shared.jobs import JobPhase
from sluice.errors import SluiceError
from support.situations.query_recorder import QueryRecorder
from support.situations.recorder import CopyRecorder, StoreRecorder
from support.situations.situations import SITUATIONS, Situation

if TYPE_CHECKING:
    from sluice.core.reconcile.queries.world import QueryDecision

PACKAGE = Path(sluice.__file__).parent
KNOWN = {reason.name for reason in chain(NORMAL, failures())}
ERRORS = {
    name
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, SluiceError)
}


@cache
def all_calls() -> Mapping[str, list[ast.Call]]:
    """Return all calls in the package, by the name of the function, method or class."""
    found = defaultdict(list)
    for path in PACKAGE.rglob("*.py"):
        if {"errors", "proto"} & set(path.parts):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                to = node.func
                name = to.attr if isinstance(to, ast.Attribute) else getattr(to, "id", "")
                found[name].append(node)
    return found


def calls(*names: str) -> Iterator[ast.Call]:
    """Return the calls of functions, methods and classes with these names in the package."""
    return chain.from_iterable(all_calls().get(name, ()) for name in names)


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    """Return the value of a call's keyword argument; None if it is not given."""
    return next((given.value for given in call.keywords if given.arg == name), None)


def said() -> Iterator[ast.expr]:
    """Yield the expressions that the code gives as reasons."""
    yield from (call.args[0] for call in calls("Saying"))
    for call in calls("Trouble", "end"):
        if reason := keyword(call, "reason"):
            yield reason


def literals() -> set[str]:
    """Return the reasons that are literals in the code."""
    return {str(one.value) for one in said() if isinstance(one, ast.Constant)}


def made() -> set[str]:
    """Return the names of the errors that the code makes."""
    return {ast.unparse(call.func).rpartition(".")[2] for call in calls(*ERRORS)}


def test_every_reason_that_code_says_is_in_the_catalogue() -> None:
    """Literal reasons are in the catalogue. Every other reason is the `reason` of a failure."""
    assert len(literals()) > 10
    assert literals() <= KNOWN
    for one in said():
        if not isinstance(one, ast.Constant):
            assert isinstance(one, ast.Attribute), ast.unparse(one)
            assert one.attr == "reason", ast.unparse(one)


def test_no_normal_reason_is_left_over() -> None:
    """The code uses each reason in the catalogue that is no failure."""
    assert {reason.name for reason in NORMAL} <= literals()


def test_every_error_that_is_made_is_in_the_catalogue() -> None:
    """An error that the code makes is a reason, or belongs to commands only.

    Errors that only group others are never made.
    """
    assert len(made()) > 30
    unsaid = OF_COMMANDS
    assert made() <= KNOWN | unsaid
    assert KNOWN.isdisjoint(ABSTRACT | unsaid)
    assert made().isdisjoint(ABSTRACT)
    assert ABSTRACT | unsaid <= ERRORS
    assert ERRORS - ABSTRACT - unsaid <= KNOWN


def test_every_outcome_is_in_the_catalogue() -> None:
    """The outcomes of attempts in the code are those of the catalogue."""
    found = {
        one.value
        for call in calls("end")
        if isinstance(one := keyword(call, "outcome"), ast.Constant)
    }
    assert found == {name for name, _ in OUTCOMES}


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda one: f"{one.kind}-{one.name}")
def test_every_state_speaks_in_words_of_the_catalogue(situation: Situation) -> None:
    """Conditions, last failure and history have reasons that the catalogue lists for the kind."""
    status = situation.body["status"]
    words = {condition["reason"] for condition in status.get("conditions", [])}
    words |= {one["reason"] for one in status.get("history", []) if "reason" in one}
    words |= {status["lastFailure"]["reason"]} if "lastFailure" in status else set()
    mine = {one.name for one in chain(NORMAL, failures()) if situation.kind in one.kinds}
    assert words <= mine


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda one: f"{one.kind}-{one.name}")
def test_conditions_stand_as_the_page_says(situation: Situation) -> None:
    """Conditions are True, except for three types. Ready is False exactly if Stalled is set."""
    found = {one["type"]: one for one in situation.body["status"].get("conditions", [])}
    if not found:
        assert situation.name == "unseen"
        return
    for name, one in found.items():
        assert name in {"Ready", "Succeeded", "HooksSucceeded"} or one["status"] == "True"
    assert (found["Ready"]["status"] == "False") == ("Stalled" in found)
    aside = {"Verified", "Drifted", "HooksSucceeded"}
    repeats = situation.kind == "StreamArchive" or "schedule" in situation.body["spec"]
    if repeats and found["Ready"]["status"] == "True":
        aside.add("Suspended")  # the last result stays, and no run begins
    assert len({one["reason"] for name, one in found.items() if name not in aside}) == 1
    mode = situation.body["spec"].get("mode")
    bounded = situation.kind in {"StreamCopy", "ScopeCopy", "StreamArchive"} or mode == "Once"
    if mode == "Continuous":  # without an end, it has not succeeded
        bounded = situation.kstatus == "Current" and found["Ready"]["reason"] != "Following"
    assert ("Succeeded" in found) == (bounded and not situation.name.endswith("scheduled"))


@pytest.mark.parametrize(
    "name", [one.name for one in failures() if one.waits or "StreamStore" in one.kinds]
)
def test_kinds_and_waiting_are_as_the_catalogue_says(name: str) -> None:
    """A store's failure appears in its conditions. A cause that is waited for costs no attempt."""
    failure = next(one for one in failures() if one.name == name)
    if "StreamStore" in failure.kinds:
        store = StoreRecorder("a")
        store.look(getattr(errors, name)("because"))
        assert {one["reason"] for one in store.body["status"]["conditions"]} == {name}
    if failure.waits:
        waiting = next(
            one
            for one in SITUATIONS
            if any(found["reason"] == name for found in one.body["status"].get("conditions", []))
        )
        assert waiting.kstatus == "InProgress"
        assert "failures" not in waiting.body["status"] or not waiting.body["status"]["failures"]


@pytest.mark.parametrize(
    "failure",
    [one for one in failures() if one.name in ERRORS and not one.waits],
    ids=lambda one: one.name,
)
def test_what_follows_is_what_the_page_says(failure: FailureReason) -> None:
    """A copy's or query's first failure is followed by what the table of failures says.

    A copy keeps or deletes its staged bytes as the page of the reason says.
    """
    error = getattr(errors, failure.name)("because")
    decision: Decision | QueryDecision
    if gencatalogue.is_of_queries(failure):
        query = QueryRecorder("a")
        query.start()
        decision = query.end(error)
    else:
        copy = CopyRecorder("a")
        copy.start()
        decision = copy.look(jobs=(copy.job(JobPhase.FAILED, error=error),))
        assert (Abandon() in decision.actions) is not gencatalogue.keeps(failure)
    stalled = decision.status.condition("Stalled") is not None
    expected = {
        gencatalogue.RETRIES: (False, True),
        gencatalogue.TRIES: (True, True),
        gencatalogue.STALLS: (True, False),
    }
    again = decision.again is not None
    of_copies, _, _ = gencatalogue.what_follows(failure).partition(" (")
    assert (stalled, again) == expected[of_copies]


def test_failures_are_warnings_and_states_are_not() -> None:
    """Events are warnings for failures, and for the few states that a user must know of."""
    assert all(is_warning(failure.name) for failure in failures())
    assert {reason.name for reason in NORMAL if is_warning(reason.name)} == {
        "DrillNotRun",
        "Lagging",
        "Orphaned",
        "OwnerOrphaned",
        "StreamMissing",
        "ResultsDiffer",
        "VerificationNotRun",
        "Conflict",
        "PartiallySucceeded",
        "StreamFailed",
        "Failed",
    }


def test_every_reason_has_a_place_on_the_page() -> None:
    """Each reason has one row, to which its link leads, and an entry in the index."""
    page = (gencatalogue.ROOT / PAGE).read_text()
    anchors = re.findall(r'^\| <a id="([a-z]+)"></a>`(\w+)` \|', page, flags=re.MULTILINE)
    assert [f"{PAGE}#{place}" for place, _ in anchors] == [anchor(name) for _, name in anchors]
    assert sorted(name for _, name in anchors) == sorted(KNOWN)
    index = page.partition("## A to Z")[2].partition("\n## ")[0]
    links = re.findall(r"\[`(\w+)`\]\(#([a-z]+)\)", index)
    assert [(place, name) for name, place in links] == sorted(anchors, key=lambda one: one[1])


def test_the_page_has_not_drifted() -> None:
    """docs/conditions.md equals the output of hack/gencatalogue.py."""
    assert (gencatalogue.ROOT / PAGE).read_text() == gencatalogue.generate()
