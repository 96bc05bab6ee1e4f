"""ScopeCopies in files: accepted and refused fields, and the parts of a copy's identity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from sluice.api.fields.common import StoreRef
from sluice.api.fields.selection import RenameSpec
from sluice.api.load import load
from sluice.api.status.scope_status import MOST_FAILED, FailedStream, ScopeCopyStatus, StreamCounts
from sluice.core.values import identity
from sluice.errors import InvalidSpec
from support.cases.resources import COPY, SCOPE, STORE, changed, label, text
from support.cases.wrong_scopes import BROKEN, CHANGEABLE, CHANGED, GOOD, UNKNOWN, WRONG, scope_copy

if TYPE_CHECKING:
    from sluice.api.kinds.scopecopy import ScopeCopySpec


def spec_of(values: dict[str, object]) -> ScopeCopySpec:
    """Return the spec of the ScopeCopy with these values."""
    (copy,) = load(text(scope_copy(values))).scopes
    return copy.spec


def id_of(values: dict[str, object]) -> str:
    """Return the identity of the copy with these values."""
    found = spec_of(values).identity()
    return identity.copy_id(cluster="c", namespace="n", name="shop", identity=found)


def test_what_is_left_out_copies_all_and_harms_nothing() -> None:
    """By default all streams are copied, to new targets in an existing scope. The sources stay."""
    spec = spec_of({})
    assert (spec.streams.include, spec.streams.exclude, spec.rename) == ((), (), ())
    assert (spec.streams.include_ephemeral, spec.parallelism) == (False, None)
    assert (spec.target.scope_policy, spec.on_exists) == ("MustExist", "Fail")
    assert (spec.source_on_complete, spec.on_truncation) == ("Retain", "Fail")
    assert (spec.failure_policy, spec.suspend, spec.backoff_limit) == ("Continue", False, 6)
    assert spec.origins == (("spec.source", spec.source),)


@pytest.mark.parametrize("values", GOOD, ids=label)
def test_a_good_one_is_taken(values: dict[str, object]) -> None:
    """Every valid combination of fields is accepted."""
    assert load(text(STORE, scope_copy(values))).scopes


@pytest.mark.parametrize(("path", "values", "_said"), [*WRONG, *UNKNOWN], ids=label)
def test_a_wrong_one_is_refused(path: str, values: dict[str, object], _said: str) -> None:
    """The error has the wrong field's path, as its field or in its text."""
    with pytest.raises(InvalidSpec) as caught:
        load(text(scope_copy(values)))
    assert caught.value.field == path or path in str(caught.value)


@pytest.mark.parametrize(("path", "values", "said"), BROKEN, ids=label)
def test_what_does_not_go_together_is_told(path: str, values: dict[str, object], said: str) -> None:
    """The error names the field and the remedy, in the API server's words."""
    with pytest.raises(InvalidSpec) as caught:
        load(text(scope_copy(values)))
    assert caught.value.field == path
    assert said in caught.value.message


def test_renames_may_begin_with_nothing() -> None:
    """An empty fromPrefix matches every name, and an empty toPrefix removes the beginning."""
    renames = [{"fromPrefix": "a-", "toPrefix": ""}, {"fromPrefix": "", "toPrefix": "b-"}]
    assert spec_of({"spec.rename": renames}).rename == (
        RenameSpec(fromPrefix="a-", toPrefix=""),
        RenameSpec(fromPrefix="", toPrefix="b-"),
    )


def test_what_may_be_changed_makes_no_other_copy() -> None:
    """Limits, parallelism, pods and default values leave the copy's identity unchanged."""
    assert {id_of(values) for values in CHANGEABLE} == {id_of({})}


def test_another_selection_is_another_copy() -> None:
    """Source, target, streams, renames and onExists are parts of the identity."""
    makes = [{}, *(values for path, values, _ in CHANGED if "Complete" not in path)]
    others = {id_of(values) for values in makes if "spec.onTruncation" not in values}
    assert len(others) == len(makes) - 1


def test_a_file_may_hold_copies_of_both_kinds() -> None:
    """Copies keep the file's order, and two kinds may use the same name."""
    other = changed(COPY, "metadata.name", "shop")
    resources = load(text(SCOPE, STORE, other))
    assert [copy.kind for copy in resources.order] == ["ScopeCopy", "StreamCopy"]
    assert [copy.metadata.name for copy in resources.scopes] == ["shop"]
    assert [copy.metadata.name for copy in resources.copies] == ["shop"]
    (scope,) = resources.scopes
    assert (
        resources.store(
            scope, StoreRef(name="local"), field="spec.source.storeRef.name"
        ).metadata.name
        == "local"
    )


def test_a_store_that_is_not_there_is_told_by_the_kind() -> None:
    """The error names the kind and the name of the resource that refers to the store."""
    (scope,) = (found := load(text(SCOPE))).scopes
    with pytest.raises(InvalidSpec, match="ScopeCopy 'shop' names StreamStore 'local'") as caught:
        found.store(scope, StoreRef(name="local"), field="spec.target.storeRef.name")
    assert caught.value.field == "spec.target.storeRef.name"


def test_a_status_names_some_failed_streams_and_counts_all() -> None:
    """The list and its messages are cut, and the counts are complete.

    An invalid count reads as absent.
    """
    long = FailedStream(stream="a", target="b", reason="SourceNotFound", message="x" * 5000)
    status = ScopeCopyStatus(
        run=1,
        streams=StreamCounts(total=90, copied=10, failed=80, summary="10/90"),
        failed_streams=(long,) * 80,
    )
    assert status.streams is not None
    assert (status.streams.failed, len(status.failed_streams)) == (80, MOST_FAILED)
    assert len(status.failed_streams[0].message) == 512
    written: dict[str, Any] = status.dump()
    assert ScopeCopyStatus.read(written) == status
    assert ScopeCopyStatus.read(written | {"streams": {"total": -1}}).streams is None
