"""The deletion of a StreamArchive, and its effects on the archive."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from sluice.archive.runs.archive import Archive
from sluice.archive.runs.leases import Lease
from sluice.archive.runs.notes import Notes
from sluice.core.archive.lease import LeaseWork
from sluice.core.archive.manifest import Maker
from sluice.core.archive.names import DataName, Format
from sluice.core.archive.notes import Note
from sluice.core.reconcile.copies.actions import Erase, Orphan
from sluice.core.values.archive_layout import HEADS, LEASES, RUNS
from sluice.engine.archive.erase import erase_archive
from sluice.errors import StoreBusy
from sluice.kube.api.kinds import STREAM_ARCHIVE, STREAM_STORE
from support.archiving.archive_runs import archive_once
from support.cases.resources import BUCKET, changed
from support.kube.archive_bench import ArchiveBench

if TYPE_CHECKING:
    from collections.abc import Iterable
    from concurrent.futures import ThreadPoolExecutor


def test_an_archive_goes_with_its_resource_where_that_is_wanted(
    threads: ThreadPoolExecutor,
) -> None:
    """The resource waits for the deletion, which leaves nothing in the bucket."""
    bench = ArchiveBench(threads, onDelete="Delete")
    bench.run()
    assert bench.body["metadata"]["finalizers"] == ["sluice.dev/staging"]
    assert Erase() in bench.delete().actions
    assert list(bench.objects.list()) == []


def test_an_archive_stays_where_nobody_said_otherwise(bench: ArchiveBench) -> None:
    """The archive can be restored without the resource."""
    bench.run()
    before = [one.name for one in bench.objects.list()]
    bench.body["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z"
    bench.step()
    assert [one.name for one in bench.objects.list()] == before


def test_a_run_that_is_abandoned_leaves_no_notes(bench: ArchiveBench) -> None:
    """Objects of an abandoned run are swept after the grace time."""
    bench.step()
    plan = bench.plan().archive
    assert plan is not None
    workload = bench.look().workload
    lease = Lease(bench.objects, plan.copy_id, LeaseWork.WRITE)
    lease.__enter__()
    workload.abandon(None, bench.root, known=None)
    assert [one.name for one in bench.objects.list(LEASES)] == []


def test_nothing_is_deleted_while_somebody_reads(bench: ArchiveBench) -> None:
    """The deletion waits for a client that restores a run."""
    bench.run()
    head = Archive(bench.objects).head()
    assert head is not None
    request = bench.request
    with Lease(bench.objects, "ab" * 16, LeaseWork.READ, run=head.runs[-1]):
        with pytest.raises(StoreBusy, match="works "):
            erase_archive(request, bench.root)
        assert list(bench.objects.list(HEADS))
    erase_archive(request, bench.root)
    assert list(bench.objects.list()) == []


@pytest.mark.parametrize("calls", range(5))
def test_a_deletion_that_was_killed_is_gone_on_with_at_once(
    bench: ArchiveBench, monkeypatch: pytest.MonkeyPatch, calls: int
) -> None:
    """The next process takes over the lease of a killed deletion."""
    bench.run()
    request = bench.request
    delete, left = bench.objects.delete, iter(range(calls))

    def until_killed(names: Iterable[str]) -> None:
        if next(left, None) is None:
            raise _KilledError
        delete(names)

    with monkeypatch.context() as patch:
        patch.setattr(bench.objects, "delete", until_killed)
        with pytest.raises(_KilledError):
            erase_archive(request, bench.root)
    assert len(list(bench.objects.list(LEASES))) == 1
    erase_archive(request, bench.root)
    assert list(bench.objects.list()) == []


class _KilledError(BaseException):
    """The exception that ends the process. All later calls of the process raise it, too."""


@pytest.mark.parametrize("ours", [0, 1])
def test_an_archive_that_has_runs_of_another_maker_is_kept(
    threads: ThreadPoolExecutor, ours: int
) -> None:
    """Runs of another resource, of the same stream at the same path, are kept."""
    bench = ArchiveBench(threads, onDelete="Delete")
    for attempt in range(ours):
        bench.run(attempt + 1)
    other = bench.request.model_copy(
        update={
            "archive_id": "0b" * 16,
            "maker": Maker(id="0b" * 16, name="StreamArchive other/orders"),
        }
    )
    archive_once(bench.store, bench.objects, other)
    bench.ask("again")
    bench.run(ours + 1)
    before = [one.name for one in bench.objects.list()]
    assert Erase() in bench.delete().actions
    assert [one.name for one in bench.objects.list()] == before
    assert bench.said[-1] == (
        "ArchiveKept",
        "The archive in StreamStore 'archives' stays: it has runs that this resource has not made.",
    )
    assert (STREAM_ARCHIVE.name, "default", "orders") not in bench.server.objects


def test_an_archive_whose_maker_is_not_known_is_kept(threads: ThreadPoolExecutor) -> None:
    """Archives that an earlier version recorded have no known maker."""
    bench = ArchiveBench(threads, onDelete="Delete")
    archive_once(bench.store, bench.objects, bench.request.model_copy(update={"maker": None}))
    before = [one.name for one in bench.objects.list()]
    assert erase_archive(bench.request, bench.root).kept
    assert [one.name for one in bench.objects.list()] == before


STRANGERS = {
    "data/2024/01/users.parquet": b"precious",
    "events/2024/clicks.json": b"{}",
    "heads/1": b"mine",
    "leases/car.pdf": b"signed",
    "runs/marathon.csv": b"42",
    "work/draft.txt": b"...",
    "readme.md": b"hello",
}


def test_a_first_run_that_is_not_recorded_is_deleted_in_any_number_of_calls(
    bench: ArchiveBench,
) -> None:
    """The run's notes name its maker and are deleted first, so that no driver resumes it."""
    bench.step()
    plan = bench.plan().archive
    assert plan is not None
    Notes(bench.objects, plan.copy_id).begin(Note(of=plan.hash, plan=plan))
    for number in range(3):
        bench.objects.put(str(DataName(0, number, 0, 1, "ab" * 32, Format.SEGMENTS)), b"x")
    calls = 0
    while any(not one.name.startswith(LEASES) for one in bench.objects.list()):
        with suppress(StoreBusy):
            erase_archive(bench.request, bench.root, seconds=-1)
        calls += 1
        assert not Notes(bench.objects, plan.copy_id).read()
    assert calls > 3
    erase_archive(bench.request, bench.root)
    assert list(bench.objects.list()) == []


def test_what_is_not_the_archives_stays_and_is_told(threads: ThreadPoolExecutor) -> None:
    """A folder of that name may belong to another client, so the resource does not wait for it."""
    bench = ArchiveBench(threads, onDelete="Delete")
    bench.run()
    for name, data in STRANGERS.items():
        bench.objects.put(name, data)
    assert Erase() in bench.delete().actions
    assert bench.objects.held == STRANGERS
    word, said = bench.said[-1]
    assert word == "ArchiveKept"
    assert said == (
        "The archive in StreamStore 'archives' is deleted; 6 objects in its folders are not of it "
        "and stay, such as 'work/draft.txt', 'heads/1', 'runs/marathon.csv'."
    )
    assert (STREAM_ARCHIVE.name, "default", "orders") not in bench.server.objects


def test_what_an_abandoned_first_run_has_put_goes(bench: ArchiveBench) -> None:
    """Neither head nor note lists the objects, but their names identify them."""
    bench.objects.put(str(DataName(0, 0, 0, 1, "ab" * 32, Format.SEGMENTS)), b"x")
    for name, data in STRANGERS.items():
        bench.objects.put(name, data)
    erased = erase_archive(bench.request, bench.root)
    assert bench.objects.held == STRANGERS
    assert (erased.kept, erased.strangers, erased.more) == ("", 6, False)


@pytest.mark.parametrize("damaged", [False, True])
def test_an_archive_without_a_head_is_kept_where_another_one_made_it(
    threads: ThreadPoolExecutor,
    damaged: bool,  # noqa: FBT001
) -> None:
    """Another client may be moving it there, or lost its head. The last manifest names it."""
    bench = ArchiveBench(threads, onDelete="Delete")
    maker = Maker(id="0b" * 16, name="StreamArchive other/orders")
    other = bench.request.model_copy(update={"archive_id": "0b" * 16, "maker": maker})
    archive_once(bench.store, bench.objects, other)
    bench.objects.delete([one.name for one in bench.objects.list(HEADS)])
    if damaged:
        (name,) = (one.name for one in bench.objects.list(RUNS))
        bench.objects.put(name, b"garbage")
    before = dict(bench.objects.held)
    assert erase_archive(bench.request, bench.root).kept
    assert bench.objects.held == before


def test_strangers_without_end_are_not_waited_for(threads: ThreadPoolExecutor) -> None:
    """The archive is deleted, and the message says that more foreign objects may exist."""
    bench = ArchiveBench(threads, onDelete="Delete")
    bench.run()
    for name, data in STRANGERS.items():
        bench.objects.put(name, data)
    tries = 0
    while True:
        try:
            erased = erase_archive(bench.request, bench.root, seconds=-1)
        except StoreBusy:
            tries += 1
            # Until the archive is deleted no client writes, and the next process knows whose it is.
            with pytest.raises(StoreBusy, match="works "):
                Lease(bench.objects, "ab" * 16, LeaseWork.WRITE).__enter__()
            continue
        break
    assert tries
    assert erased.more
    assert " or more objects " in erased.said
    assert set(STRANGERS) <= set(bench.objects.held)


def test_an_archive_that_cannot_be_read_is_kept(threads: ThreadPoolExecutor) -> None:
    """The makers of its runs are unknown, so the resource does not wait for it."""
    bench = ArchiveBench(threads, onDelete="Delete")
    bench.run()
    bench.objects.put(f"{HEADS}{9:016x}", b"garbage")
    before = dict(bench.objects.held)
    assert Erase() in bench.delete().actions
    assert bench.objects.held == before
    assert "it is not known who has made its runs" in bench.said[-1][1]
    assert (STREAM_ARCHIVE.name, "default", "orders") not in bench.server.objects


def test_an_archive_that_may_not_be_deleted_is_kept(threads: ThreadPoolExecutor) -> None:
    """The store's access counts for deletion as well, so the resource does not wait for it."""
    bench = ArchiveBench(threads, onDelete="Delete")
    bench.run()
    access = {"operations": ["Read", "Create", "Append"]}
    bench.server.put(STREAM_STORE, changed(BUCKET, "spec.access", access))
    before = [one.name for one in bench.objects.list()]
    assert Erase() in bench.delete().actions
    assert [one.name for one in bench.objects.list()] == before
    word, said = bench.said[-1]
    assert word == "ArchiveKept"
    assert said.endswith(" stays: StreamStore 'archives' does not allow to Delete.")
    assert (STREAM_ARCHIVE.name, "default", "orders") not in bench.server.objects


@pytest.mark.parametrize("known", [False, True])
def test_the_first_run_of_somebody_else_is_kept(
    threads: ThreadPoolExecutor,
    known: bool,  # noqa: FBT001
) -> None:
    """Notes name the maker of an unrecorded run's objects. Only this resource's are deleted."""
    bench = ArchiveBench(threads, onDelete="Delete")
    bench.step()
    plan = bench.plan().archive
    assert plan is not None
    if not known:
        plan = plan.model_copy(update={"maker": Maker(id="0b" * 16, name="StreamArchive other")})
    Notes(bench.objects, "0b" * 16).begin(Note(of=plan.hash, plan=plan))
    bench.objects.put(str(DataName(0, 0, 0, 1, "ab" * 32, Format.SEGMENTS)), b"x")
    assert (not erase_archive(bench.request, bench.root).said) is known
    assert len(list(bench.objects.list())) == (0 if known else 2)


def test_what_is_left_behind_is_said(bench: ArchiveBench) -> None:
    """An event names the remains."""
    situation = bench.look()
    asyncio.run(bench.workings.perform(situation, Orphan("no way")))
    ((word, said),) = bench.said
    assert word == "Orphaned"
    assert said.startswith("the archive in/orders in StreamStore 'archives' may hold runs")
