"""The deletion of a StreamArchive: the remains that go with it, and its finalizer."""

from dataclasses import replace

from sluice.core.reconcile.copies.actions import (
    Abandon,
    AddFinalizer,
    DeleteJob,
    Erase,
    HoldStores,
    Orphan,
    RemoveFinalizer,
)
from sluice.core.reconcile.copies.decide_archive import reconcile_archive
from sluice.core.reconcile.copies.scheduled.decide import after_failure
from sluice.errors import AccessDenied, SourceNotFound, StoreBusy
from support.reconcile.archives_seen import EVERY_HOUR, after, archive, begun, done, spec
from support.reconcile.copies import DONE, STALLED, job, message, reason, said, trouble, world


def test_a_deleted_archive_stays_in_its_store() -> None:
    """Only the run's notes are deleted, after its driver has stopped."""
    seen = replace(begun(), deleted=1.0)
    stopping = reconcile_archive(seen, world(jobs=(job(),)))
    assert stopping.actions == (DeleteJob(job().name),)
    gone = reconcile_archive(seen, world())
    assert gone.actions == (Abandon(), RemoveFinalizer())


def test_an_archive_is_deleted_where_that_is_wanted() -> None:
    """The resource is held until then, even without a current run."""
    seen = done(onDelete="Delete")
    assert reconcile_archive(seen, world()).actions == ()
    leaving = replace(seen, deleted=1.0)
    decision = reconcile_archive(leaving, world())
    assert decision.actions == (Abandon(), Erase(), RemoveFinalizer())
    busy = after_failure(leaving, world(), trouble(StoreBusy("more objects are left")))
    assert (reason(busy), busy.actions) == ("StoreBusy", ())
    assert busy.again is not None
    assert "cannot be deleted yet" in message(busy)


def test_an_archive_is_deleted_where_that_is_wanted_only_since_its_last_run() -> None:
    """The resource is held from that change on, and released if the change is reverted."""
    seen = done()
    assert not seen.finalizer
    changed = replace(seen, spec=spec(onDelete="Delete"), generation=2)
    decision = reconcile_archive(changed, world())
    assert (decision.actions, said(decision)) == ((AddFinalizer(), HoldStores()), DONE)
    held = after(changed, decision)
    assert reconcile_archive(held, world()).actions == ()
    leaving = reconcile_archive(replace(held, deleted=1.0), world())
    assert leaving.actions == (Abandon(), Erase(), RemoveFinalizer())
    kept = reconcile_archive(replace(held, spec=spec(), generation=3), world())
    assert kept.actions == (Abandon(), RemoveFinalizer())


def test_runs_of_before_are_deleted_though_the_next_one_fails() -> None:
    """The resource is held even if no run can begin any more."""
    seen = replace(done(), spec=spec(onDelete="Delete"), requested_at="today")
    around = world(trouble=trouble(SourceNotFound("there is no stream in/orders")))
    decision = reconcile_archive(seen, around)
    assert decision.actions == (AddFinalizer(), HoldStores())
    assert said(decision) == STALLED


def test_an_archive_that_may_not_be_deleted_lets_its_resource_go() -> None:
    """The store's access forbids the deletion, or the archive is in a volume."""
    seen = replace(done(), spec=spec(onDelete="Delete"), generation=2)
    denied = trouble(AccessDenied("does not allow Delete", field="spec.access"))
    assert reconcile_archive(seen, world(target=denied)).actions == ()


def test_an_archive_that_was_never_made_holds_nothing() -> None:
    """Before the first run there is nothing to delete."""
    seen = archive(schedule=EVERY_HOUR, onDelete="Delete")
    assert reconcile_archive(seen, world()).actions == ()


def test_an_archive_that_nobody_can_delete_is_let_go_loudly() -> None:
    """The user forces it by annotation."""
    leaving = replace(done(onDelete="Delete"), deleted=1.0, force_orphan=True)
    found = reconcile_archive(leaving, world()).actions
    assert [type(action) for action in found] == [Orphan, RemoveFinalizer]
