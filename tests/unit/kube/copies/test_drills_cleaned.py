"""The cleanup after restore drills: the end of an archive, of its drills, and of their streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sluice.core.reconcile.copies.actions import DropScratch
from sluice.core.values import identity
from sluice.core.values.model import StreamConfig
from sluice.errors import StoreUnavailable
from sluice.kube.api.kinds import JOB, STREAM_ARCHIVE
from support.kube.drill_bench import SCRATCH, DrillBench, started

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor


@pytest.fixture
def bench(threads: ThreadPoolExecutor) -> DrillBench:
    """Return an archive with a run, at rest."""
    return DrillBench(threads)


def test_an_archive_that_is_orphaned_names_the_scratch_stream(bench: DrillBench) -> None:
    """The stream stays in the store, since a user insists on the orphaning."""
    started(bench)
    bench.restore()
    bench.copy_step()
    bench.body["metadata"]["annotations"] = {"sluice.dev/force-orphan": "true"}
    bench.delete()
    ((reason, message),) = bench.said
    assert reason == "Orphaned"
    assert str(SCRATCH) in message


def test_deleting_the_archive_deletes_the_scratch_stream_first(bench: DrillBench) -> None:
    """The deletion comes when the stream is whole and visible, and its StreamCopy is finished."""
    started(bench)
    bench.restore()
    bench.copy_step()
    bench.copy_step()
    assert bench.scratch()
    bench.delete()
    assert bench.body["metadata"]["finalizers"] != []
    bench.copy_step()
    bench.copy_step()
    decision = bench.step()
    assert DropScratch() in decision.actions
    assert not bench.scratch()
    assert (
        bench.server.body(STREAM_ARCHIVE, "orders") is None
        or bench.body["metadata"]["finalizers"] == []
    )


def test_a_store_that_is_away_keeps_the_archive_and_its_scratch_stream(bench: DrillBench) -> None:
    """The finalizer stays until the scratch stream is deleted."""
    started(bench)
    bench.restore()
    bench.copy_step()
    while bench.copy is not None:
        bench.step()
        bench.copy_step()
    describe = type(bench.store).describe
    away = StoreUnavailable("away")

    def fail(*_: object) -> None:
        raise away

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(bench.store), "describe", fail)
        bench.step()
        assert bench.drill.scratch
        assert "not deleted yet" in (bench.drill.message or "")
        assert bench.body["metadata"]["finalizers"] != []
    assert type(bench.store).describe is describe
    bench.finish()
    assert (bench.scratch(), bench.drill.scratch) == (False, False)
    assert "not deleted yet" not in (bench.drill.message or "")


def test_a_stream_of_that_name_that_no_copy_made_is_left_alone(bench: DrillBench) -> None:
    """The drill cannot run then, and the stream keeps its bytes."""
    bench.store.create_stream(SCRATCH, StreamConfig())
    bench.due()
    bench.step()
    bench.copy_step()
    bench.copy_step()
    bench.finish()
    assert bench.verdict[1] == "DrillNotRun"
    assert bench.scratch()
    assert bench.world.streams[SCRATCH].config.tags == ()


def test_what_a_killed_drill_left_is_deleted_even_without_its_copy(bench: DrillBench) -> None:
    """Name and tags identify the stream: the next drill finds it, and the one after passes."""
    left = StreamConfig(tags=identity.owner_tags("0" * 32))
    bench.store.create_stream(SCRATCH, left)
    bench.due()
    bench.step()
    bench.copy_step()
    bench.copy_step()
    bench.finish()
    assert not bench.scratch()
    bench.whole_drill()
    assert bench.verdict[0] == "True"


def test_removing_the_field_between_drills_forgets_their_times(bench: DrillBench) -> None:
    """If the field is added again, drills begin with its next time, not with a past one."""
    bench.whole_drill()
    verify = bench.body["spec"].pop("verify")
    bench.due()
    bench.settle()
    assert "drill" not in bench.body["status"]
    assert bench.verdict == ("", "", "")
    bench.body["spec"]["verify"] = verify
    bench.step()
    bench.step()
    assert bench.copy is None


def test_removing_the_field_ends_the_drill(bench: DrillBench) -> None:
    """The remains of the drill are deleted, and the status has no drill any more."""
    started(bench)
    bench.body["spec"].pop("verify")
    for _ in range(3):
        bench.step()
        bench.copy_step()
        bench.server.objects = {
            key: one for key, one in bench.server.objects.items() if key[0] != JOB.name
        }
    bench.settle()
    assert (bench.copy, bench.scratch()) == (None, False)
    assert "drill" not in bench.body["status"]
    assert bench.verdict == ("", "", "")
