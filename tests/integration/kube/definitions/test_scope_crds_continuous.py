"""ScopeCopies that follow their streams, on a real API server: accepted, refused and changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from sluice.api.fields.together import SEALED
from support.cases.resources import SCOPE, changed, label
from support.cases.wrong_followed_scopes import FOLLOWED, GOOD, WRONG, followed
from support.search import few

if TYPE_CHECKING:
    from support.kube.apply import Applier


@pytest.mark.parametrize("changes", GOOD, ids=label)
def test_what_the_model_takes_is_taken(applier: Applier, changes: dict[str, object]) -> None:
    """The API server accepts what the command line accepts."""
    assert not applier.refusal_of_new(followed(changes))


@pytest.mark.parametrize(("path", "changes", "said"), WRONG, ids=label)
def test_what_the_model_refuses_is_refused(
    applier: Applier, path: str, changes: dict[str, object], said: str
) -> None:
    """The API server refuses what the model refuses, with the same field and a remedy."""
    refusal = applier.refusal_of_new(followed(changes))
    assert path in refusal
    assert said in refusal


@pytest.mark.parametrize(("before", "after"), [(SCOPE, FOLLOWED), (FOLLOWED, SCOPE)])
def test_the_mode_stays(applier: Applier, before: dict[str, Any], after: dict[str, Any]) -> None:
    """A copy's mode cannot change: following needs another resource."""
    name = "mode-of-" + ("one" if before is SCOPE else "other")
    applier.apply(changed(before, "metadata.name", name))
    refusal = applier.refusal(changed(after, "metadata.name", name))
    assert "spec.mode: Forbidden: mode cannot be changed" in refusal
    assert "make another copy, under another name" in refusal


@pytest.mark.parametrize(
    "changes",
    few(
        [
            {"spec.stopWhen": {"idleSeconds": 5}},
            {"spec.cutover": "Drain"},
            {"spec.cutover": "SealAndDrain"},
            {"spec.lagObjectiveSeconds": 5},
        ],
        2,
    ),
    ids=label,
)
def test_how_it_ends_can_be_changed(applier: Applier, changes: dict[str, object]) -> None:
    """The fields for the end can be changed and changed back while the copy runs."""
    applier.apply(followed(changes | {"metadata.name": "ends"}))
    assert not applier.refusal(followed({"metadata.name": "ends"}))


@pytest.mark.parametrize("state", few(["Draining", *SEALED], 2))
def test_sealed_sources_stay_wished_for(unwatched: Applier, state: str) -> None:
    """Once the status says that a source is sealed, the cutover cannot change."""
    name = f"cut-{state.lower()}"
    seals = {"metadata.name": name, "spec.cutover": "SealAndDrain"}
    unwatched.apply(followed(seals))
    unwatched.write_status("scopecopies", name, {"cutover": {"state": state}})
    for other in ({"spec.cutover": "None"}, {"spec.cutover": "Drain"}):
        refusal = unwatched.refusal(followed(seals | other))
        if state in SEALED:
            assert "spec.cutover: Forbidden: sources are sealed" in refusal
            assert "make another copy for the way back" in refusal
        else:
            assert not refusal
    if state in SEALED:
        assert unwatched.refusal(followed({"metadata.name": name}))
    assert not unwatched.refusal(followed(seals | {"spec.lagObjectiveSeconds": 5}))
