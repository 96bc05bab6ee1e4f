"""StreamCopies with `mode: Continuous`: their fields, and the errors for wrong combinations."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from sluice.api.load import load
from sluice.errors import InvalidSpec
from support.cases.resources import COPY, changed, label, text
from support.cases.wrong_continuous import GOOD, WRONG, continuous

if TYPE_CHECKING:
    from sluice.api.kinds.streamcopy import StreamCopySpec


def read(changes: dict[str, object]) -> StreamCopySpec:
    """Return the spec of a copy that follows its source, with changes by the paths of fields."""
    return load(text(continuous(changes))).copies[0].spec


@pytest.mark.parametrize("changes", GOOD, ids=label)
def test_what_goes_together_is_taken(changes: dict[str, object]) -> None:
    """Each field is accepted alone, and together with the fields that it needs."""
    assert read(changes).follows


@pytest.mark.parametrize(("changes", "path", "said"), WRONG, ids=label)
def test_what_does_not_go_together_is_refused(
    changes: dict[str, object], path: str, said: str
) -> None:
    """The error carries the path of the wrong field, and its message names the remedy."""
    with pytest.raises(InvalidSpec) as caught:
        read(changes)
    assert caught.value.field == path
    assert said in str(caught.value)


def test_all_that_is_wrong_is_named() -> None:
    """One error reports several mistakes: the first as its field, the others in its message."""
    with pytest.raises(InvalidSpec) as caught:
        read({"spec.target.onExists": "Append", "spec.activeDeadlineSeconds": 60})
    assert caught.value.field == "spec.target.onExists"
    assert "spec.activeDeadlineSeconds: mode: Continuous has no end" in caught.value.message


def test_values_are_read() -> None:
    """Times become UTC, sizes become bytes, and a reader group without `as` keeps its name."""
    spec = read(
        {
            "spec.stopWhen": {"bytes": "1Ki", "time": "2026-12-01T00:00:00+01:00"},
            "spec.readerGroups": [{"name": "a"}, {"name": "b", "as": "c"}],
        }
    )
    assert spec.stop_when is not None
    assert spec.stop_when.bytes == 1024
    assert spec.stop_when.time == datetime(2026, 11, 30, 23, tzinfo=UTC)
    assert [(one.name, one.made) for one in spec.reader_groups] == [("a", "a"), ("b", "c")]
    assert (spec.cutover, spec.lag_objective_seconds) == ("None", 30)


def test_a_snapshot_is_the_copy_that_it_always_was() -> None:
    """`mode: Snapshot` has the identity of a copy without a mode, so that older copies continue.

    `mode: Continuous` is a part of the identity.
    """
    plain = load(text(COPY)).copies[0].spec
    snapshot = load(text(changed(COPY, "spec.mode", "Snapshot"))).copies[0].spec
    assert plain.identity() == snapshot.identity()
    assert set(plain.identity()) == {"source", "target"}
    assert read({}).identity() == plain.identity() | {"mode": "Continuous"}


def test_what_may_be_changed_is_no_part_of_the_identity() -> None:
    """Cutover, stop conditions and the lag's objective leave the copy's identity unchanged."""
    ends = {"spec.cutover": "Drain", "spec.stopWhen": {"bytes": 1}, "spec.lagObjectiveSeconds": 5}
    assert read(ends).identity() == read({}).identity()
