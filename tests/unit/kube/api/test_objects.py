from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sluice.api.kinds.scopecopy import ScopeCopy, ScopeCopySpec
from sluice.api.kinds.streamcopy import StreamCopy
from sluice.api.kinds.streamstore import StreamStore
from sluice.api.status.common import MOST_TOKEN, ConditionType
from sluice.api.status.copy_status import StreamCopyStatus
from sluice.api.status.scope_status import ScopeCopyStatus
from sluice.core.reconcile.copies.seen import CopySeen
from sluice.errors import InvalidSpec
from sluice.kube.api.objects import (
    FORCE_ORPHAN,
    REQUESTED_AT,
    STAGING_FINALIZER,
    copy_seen,
    has_finalizer,
    is_deleting,
    origins_of,
    parse,
    parse_copy,
)
from sluice.kube.api.status import of_invalid
from sluice.kube.stores.dependents import stores_of
from support.cases.resources import COPY, SCOPE, STORE, changed


def body(status: dict[str, Any] | None = None, **meta: Any) -> dict[str, Any]:
    """Return a StreamCopy as the API server returns it, with this metadata."""
    own = {"name": "orders", "namespace": "team", "uid": "u", "generation": 4} | meta
    return COPY | {"metadata": own} | ({} if status is None else {"status": status})


def seen(status: dict[str, Any] | None = None, **meta: Any) -> CopySeen:
    """Return the copy as `reconcile` takes it."""
    found = body(status, **meta)
    return copy_seen(found, parse(found, StreamCopy), "id")


def test_a_copy_is_seen_as_it_is_written() -> None:
    """A copy without a look has an empty status."""
    found = seen()
    assert (found.name, found.uid, found.generation, found.copy_id) == ("orders", "u", 4, "id")
    assert found.status == StreamCopyStatus()
    assert found.changed
    assert [found.asked, found.done, found.finalizer, found.force_orphan] == [False] * 4
    assert found.deleted is None
    assert seen({"observedGeneration": 4}).changed is False


def test_a_copy_of_a_scope_is_seen_as_one() -> None:
    """It has a spec and a status of its kind."""
    own = {"name": "shop", "namespace": "team", "uid": "u", "generation": 4}
    status = {"run": 2, "streams": {"total": 3, "summary": "1/3"}, "attempts": 5}
    found = SCOPE | {"metadata": own, "status": status}
    resource = parse_copy(found)
    assert resource == parse(found, ScopeCopy)
    assert [field for field, _ in origins_of(resource)] == ["spec.source"]
    scope = copy_seen(found, resource, "id")
    assert (scope.name, scope.uid, scope.generation, scope.copy_id) == ("shop", "u", 4, "id")
    assert isinstance(scope.spec, ScopeCopySpec)
    assert isinstance(scope.status, ScopeCopyStatus)
    assert (scope.status.run, scope.status.attempts) == (2, 5)
    assert parse_copy(body()) == parse(body(), StreamCopy)


def test_a_status_of_another_version_is_read_as_far_as_it_goes() -> None:
    """Unknown fields are skipped without an error."""
    found = seen({"observedGeneration": 4, "attempts": "many", "news": 1, "failures": 2})
    assert (found.status.observed_generation, found.status.attempts) == (4, 0)
    assert found.status.failures == 2


@pytest.mark.parametrize(
    ("annotations", "handled", "asked"),
    [
        (None, None, False),
        ({}, "then", False),
        ({REQUESTED_AT: ""}, None, False),
        ({REQUESTED_AT: "now"}, None, True),
        ({REQUESTED_AT: "now"}, "then", True),
        ({REQUESTED_AT: "now"}, "now", False),
        ({REQUESTED_AT: "x" * 9999}, "x" * MOST_TOKEN, False),
    ],
)
def test_a_wish_is_one_that_was_not_heard_yet(
    annotations: dict[str, str] | None, handled: str | None, *, asked: bool
) -> None:
    """A status can record a request of any length as handled."""
    status = StreamCopyStatus(last_handled_requested_at=handled).dump()
    assert seen(status, annotations=annotations).asked == asked


@pytest.mark.parametrize(
    ("value", "insists"), [("true", True), ("yes", True), ("false", False), ("", False)]
)
def test_any_word_but_no_insists(value: str, *, insists: bool) -> None:
    """The annotation counts with any value but `false` and the empty one."""
    assert seen(annotations={FORCE_ORPHAN: value}).force_orphan == insists


def test_a_deletion_is_so_many_seconds_old() -> None:
    """If the clock is behind the API server's, the age is zero."""
    now = datetime.now(UTC).replace(microsecond=0)
    then = (now - timedelta(seconds=90)).strftime("%Y-%m-%dT%H:%M:%SZ")
    soon = (now + timedelta(seconds=90)).strftime("%Y-%m-%dT%H:%M:%SZ")
    deleted = seen(deletionTimestamp=then, finalizers=["other", STAGING_FINALIZER])
    assert deleted.deleted == pytest.approx(90, abs=5)
    assert deleted.finalizer
    assert seen(deletionTimestamp=soon).deleted == 0.0
    assert is_deleting(body(deletionTimestamp=then))
    assert not is_deleting(body())
    assert has_finalizer(body(finalizers=None), STAGING_FINALIZER) is False


def test_an_object_that_is_no_copy_is_refused_by_the_field() -> None:
    """A status can hold the error."""
    with pytest.raises(InvalidSpec) as caught:
        parse(changed(body(), "spec.source.scope", "no/scope"), StreamCopy)
    assert caught.value.field == "spec.source.scope"
    with pytest.raises(InvalidSpec):
        parse(changed(STORE, "spec.pravega.controllerURI", "http://x"), StreamStore)


def test_a_copy_that_cannot_be_read_is_said_to_be_wrong() -> None:
    """Its status stalls for the present generation, and keeps its other fields."""
    before = StreamCopyStatus(attempts=3)
    after = of_invalid(before, body(), InvalidSpec("no such field", field="spec.other"))
    said = {found.type: found.status for found in after.conditions}
    assert said == {"Ready": "False", "Succeeded": "False", "Stalled": "True"}
    ready = after.condition(ConditionType.READY)
    assert ready is not None
    assert (ready.reason, after.observed_generation, after.attempts) == ("InvalidSpec", 4, 3)
    assert ready.message.startswith("spec.other: no such field. ")


def test_a_copy_names_its_stores() -> None:
    """A damaged copy names the stores that it can."""
    local, far, bucket = (("team", name) for name in ("local", "far", "bucket"))
    assert stores_of(body()) == {local}
    assert stores_of(changed(body(), "spec.target.storeRef.name", "far")) == {local, far}
    shared = changed(body(), "spec.target.storeRef.namespace", "platform")
    assert stores_of(shared) == {local, ("platform", "local")}
    folder = {"archive": {"storeRef": {"name": "bucket"}, "path": "a"}}
    assert stores_of(changed(body(), "spec.source", folder)) == {bucket, local}
    assert stores_of(changed(body(), "spec.target", folder)) == {bucket, local}
    assert stores_of({"metadata": {"name": "x"}}) == set()
    assert stores_of({"metadata": {}, "spec": {"source": {}}}) == set()
