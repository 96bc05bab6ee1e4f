"""ScopeCopies with `mode: Continuous`: their fields, and the errors for wrong combinations."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from sluice.api.load import load
from sluice.core.values.wish import Wish
from sluice.core.workloads.request import scope_request, wish_of
from sluice.errors import InvalidSpec
from support.cases.resources import SCOPE, changed, label, text
from support.cases.wrong_followed_scopes import GOOD, WRONG, followed

if TYPE_CHECKING:
    from sluice.api.kinds.scopecopy import ScopeCopy


def read(changes: dict[str, object]) -> ScopeCopy:
    """Return a copy that follows the streams of a scope."""
    return load(text(followed(changes))).scopes[0]


@pytest.mark.parametrize("changes", GOOD, ids=label)
def test_what_goes_together_is_taken(changes: dict[str, object]) -> None:
    """Each field is accepted alone, and together with the fields that it needs."""
    assert read(changes).spec.follows


@pytest.mark.parametrize(("path", "changes", "said"), WRONG, ids=label)
def test_what_does_not_go_together_is_refused(
    path: str, changes: dict[str, object], said: str
) -> None:
    """The error carries the path of the wrong field, and its message names the remedy."""
    with pytest.raises(InvalidSpec) as caught:
        read(changes)
    assert caught.value.field == path
    assert said in str(caught.value)


def test_a_snapshot_is_the_copy_that_it_always_was() -> None:
    """`mode: Snapshot` has the identity of a copy without a mode, so that older copies continue.

    `mode: Continuous` is a part of the identity.
    """
    plain = load(text(SCOPE)).scopes[0].spec
    snapshot = load(text(changed(SCOPE, "spec.mode", "Snapshot"))).scopes[0].spec
    assert plain.identity() == snapshot.identity()
    assert "mode" not in plain.identity()
    assert read({}).spec.identity() == plain.identity() | {"mode": "Continuous"}


def test_what_may_be_changed_is_no_part_of_the_identity() -> None:
    """Cutover and stop conditions leave the copy's identity unchanged."""
    ends = {"spec.cutover": "Drain", "spec.stopWhen": {"idleSeconds": 1}}
    assert read(ends).spec.identity() == read({}).spec.identity()


def test_the_request_says_that_streams_are_followed_and_the_wish_how_they_end() -> None:
    """The wish may change, so the request that plans record does not contain it."""
    ends = {
        "spec.cutover": "Drain",
        "spec.stopWhen": {"idleSeconds": 9, "time": "2126-12-01T00:00:00Z"},
    }
    copy = read(ends)
    request = scope_request(copy, cluster="")
    assert request.follow
    assert request.stop_time is not None
    assert request.model_dump() == scope_request(read({}), cluster="").model_dump()
    end = datetime(2126, 12, 1, tzinfo=UTC)
    assert wish_of(copy.spec) == Wish(cutover="Drain", idle_seconds=9, time=end)
    assert wish_of(load(text(SCOPE)).scopes[0].spec) is None
