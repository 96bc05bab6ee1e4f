"""The looks and actions of a ScopeCopy to or from archives: a model store, a bucket."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from sluice.archive.runs.verify import verify_archive
from sluice.core.reconcile.copies.actions import Abandon, DropControls, Orphan, StartJob
from sluice.core.reconcile.copies.object_names import plan_name
from sluice.core.reconcile.shared.jobs import job_name
from sluice.core.scope.scope import Counts
from sluice.core.workloads.answers import ScopeEnded
from sluice.kube.api.kinds import JOB, STREAM_STORE
from support.cases.resources import BUCKET, SCOPE, changed
from support.kube.scope_bench import ScopeBench
from support.reconcile.copies import DONE, STALLED, UID, message, reason, said
from support.reconcile.scope_archives import ARCHIVED, RESTORED

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sluice.archive.runs.archive import Archive


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    """Yield threads for the calls to stores."""
    with ThreadPoolExecutor(4) as found:
        yield found


def side(name: str, store: str) -> dict[str, Any]:
    """Return one side of a copy: archives in a store."""
    return {name: {"archive": {"storeRef": {"name": store}, "path": "backup/in"}}}


@pytest.fixture
def archiving(threads: ThreadPoolExecutor, tmp_path: Path) -> ScopeBench:
    """Return a new copy of three streams to archives."""
    return ScopeBench(threads, folder=tmp_path, **ARCHIVED)


def archive(bench: ScopeBench, stream: str) -> Archive:
    """Return the archive of a stream."""
    return bench.root.archive(f"backup/in/{stream}")


def runs(bench: ScopeBench) -> dict[str, int]:
    """Return the number of runs in each stream's archive."""
    heads = {name: archive(bench, name).head() for name in bench.root.names("backup/in")}
    return {name: len(head.runs) for name, head in heads.items() if head is not None}


def again(bench: ScopeBench, **spec: Any) -> ScopeBench:
    """Make another copy with the same store, bucket and operator."""
    bench.body["spec"] = {**SCOPE["spec"], **spec}
    bench.body["metadata"] |= {"generation": 1, "finalizers": []}
    bench.body.pop("status", None)
    bench.server.objects = {
        key: one for key, one in bench.server.objects.items() if key[0] not in {"Job", "ConfigMap"}
    }
    bench.begin()
    return bench


def test_the_first_look_is_a_plan_of_runs(archiving: ScopeBench) -> None:
    """Each stream has one run. The bucket's keys are mounted where the driver reads them."""
    decision = archiving.step()
    assert message(decision) == "The driver starts; 3 streams with 521 B to archive."
    plan = archiving.plan()
    assert plan.streams == ()
    assert [run.path for run in plan.runs] == [
        f"backup/in/{one}" for one in ("s001", "s000", "s002")
    ]
    written = archiving.config_map(plan_name("shop", UID))
    assert written is not None
    assert written["metadata"]["annotations"]["sluice.dev/streams"] == "3"
    pod = archiving.server.objects[JOB.name, "default", job_name(UID, 1)]["spec"]["template"][
        "spec"
    ]
    assert [one["secret"]["secretName"] for one in pod["volumes"] if "secret" in one] == ["keys"]
    assert {one["state"] for one in archiving.results()} == {"Planned"}


def test_a_scope_is_followed_into_its_archives(archiving: ScopeBench) -> None:
    """The operator itself finds each stream's run there. Nothing else is left."""
    archiving.step()
    assert archiving.drive().is_over
    assert isinstance(archiving.look().world.answer, ScopeEnded)
    archiving.step()
    manifests = {}
    for one in archiving.results():
        head = archive(archiving, one["stream"]).head()
        assert head is not None
        manifests[one["stream"]] = head.runs[-1].sha256
    assert {one["stream"]: one["digest"] for one in archiving.results()} == manifests
    decision = archiving.step()
    assert (said(decision), reason(decision)) == (DONE, "Succeeded")
    assert message(decision).startswith("3 streams are archived in backup/in: ")
    assert archiving.body["metadata"]["finalizers"] == []
    assert archiving.root.names("backup/in") == ["s000", "s001", "s002"]
    assert archiving.step().actions[-1] == DropControls()  # the driver ended long ago
    assert archiving.server.all(JOB) == []
    assert archiving.step().actions == ()


def test_a_driver_is_not_believed_that_a_stream_is_archived(archiving: ScopeBench) -> None:
    """The operator checks each recorded run. A missing run is named, and the others stay."""
    archiving.step()
    archiving.drive()
    lost = archive(archiving, "s001").objects
    lost.delete([one.name for one in lost.list()])
    archiving.step()
    decision = archiving.step()
    assert reason(decision) == "PartiallySucceeded"
    assert "s001 (TargetReplaced)" in message(decision)


def test_progress_is_read_in_the_archives(archiving: ScopeBench) -> None:
    """A running driver need not report its progress."""
    archiving.step()
    plan = archiving.plan()
    watch = archiving.look().workload.watch(plan, archiving.root)
    assert watch.measure().bytes == 0
    archiving.drive()
    progress = watch.measure()
    assert (progress.bytes, progress.total) == (plan.bytes, plan.bytes)
    assert progress.streams == Counts(total=3, copied=3)


def test_a_copy_to_archives_that_is_deleted_leaves_no_notes(archiving: ScopeBench) -> None:
    """Recorded runs stay, and can be restored."""
    archiving.step()
    archiving.drive()
    situation = archiving.look()
    archiving.perform(situation, Abandon())
    assert [one.name for one in archiving.root.archive("backup/in").objects.list("work/")] == []
    assert runs(archiving) == {"s000": 1, "s001": 1, "s002": 1}
    for name in runs(archiving):
        assert [one.name for one in archive(archiving, name).objects.list("work/")] == []


def test_a_copy_to_archives_that_was_not_begun_leaves_nothing(archiving: ScopeBench) -> None:
    """Only the plan existed."""
    archiving.step()
    archiving.perform(archiving.look(), Abandon())
    assert [one.name for one in archiving.root.archive("backup").objects.list()] == []


def test_a_copy_to_archives_that_is_applied_anew_finds_its_runs(archiving: ScopeBench) -> None:
    """The copy has the same id, though its whole status is lost."""
    archiving.step()
    archiving.drive()
    bench = again(archiving, **ARCHIVED)
    assert isinstance(bench.look().world.answer, ScopeEnded)
    bench.step()
    assert reason(bench.step()) == "Succeeded"
    assert runs(bench) == {"s000": 1, "s001": 1, "s002": 1}


@pytest.mark.parametrize(
    ("choice", "why", "text"),
    [
        ("Fail", "TargetExists", "2 archives are in the folder backup/in already"),
        ("Skip", "Succeeded", "No stream of scope in is to be archived"),
        ("Append", "Starting", "2 streams with 0 B to archive"),
    ],
)
def test_archives_of_others_are_treated_as_the_copy_says(
    archiving: ScopeBench, choice: str, why: str, text: str
) -> None:
    """By default the copy does not begin."""
    archiving.step()
    archiving.drive()
    some = {"exclude": [{"type": "Exact", "value": "s002"}]}
    bench = again(archiving, onExists=choice, streams=some, **ARCHIVED)
    decision = bench.step()
    if decision.again == 0:  # results are published before
        decision = bench.step()
    assert reason(decision) == why
    assert text in message(decision)


def test_a_scope_is_restored_as_it_was(archiving: ScopeBench) -> None:
    """The plan of another copy names the runs, and that copy releases them at the end."""
    archiving.step()
    archiving.drive()
    bench = again(archiving, **RESTORED)
    decision = bench.step()
    assert message(decision) == "The driver starts; 3 streams with 521 B to copy."
    plan = bench.plan()
    assert {one.sources[0].archive.path for one in plan.streams if one.sources[0].archive} == {
        f"backup/in/{name}" for name in ("s000", "s001", "s002")
    }
    assert bench.drive().is_over
    bench.step()
    decision = bench.step()
    assert (said(decision), reason(decision)) == (DONE, "Succeeded")
    assert bench.store.list_streams("out") == ["s000", "s001", "s002"]
    assert bench.body["metadata"]["finalizers"] == []
    assert not [name for name in bench.world.segments if "#" in name]
    for name in runs(bench):
        assert [one.name for one in archive(bench, name).objects.list("leases/")] == []


def test_a_scope_is_moved_into_archives(threads: ThreadPoolExecutor, tmp_path: Path) -> None:
    """Each stream is deleted when its archive is whole, and the scope at the end."""
    bench = ScopeBench(threads, folder=tmp_path, sourceOnComplete="Delete", **ARCHIVED)
    bench.step()
    assert bench.drive().is_over
    bench.step()
    decision = bench.step()
    assert reason(decision) == "Succeeded"
    assert message(decision).endswith(" Scope in is deleted.")
    assert "in" not in bench.world.scopes
    assert all(verify_archive(archive(bench, name)).problems == [] for name in runs(bench))


def test_an_archive_that_is_damaged_is_named(archiving: ScopeBench) -> None:
    """The other streams are restored, and the target of the damaged archive is missing."""
    archiving.step()
    archiving.drive()
    objects = archive(archiving, "s001").objects
    (data,) = [one.name for one in objects.list("data/")]
    objects.put(data, b"something else")
    bench = again(archiving, **RESTORED)
    bench.step()
    bench.drive()
    bench.step()
    decision = bench.step()
    assert reason(decision) == "PartiallySucceeded"
    assert "2 of 3 streams are copied, 1 failed: s001 (ArchiveDamaged)" in message(decision)
    assert bench.store.list_streams("out") == ["s000", "s002"]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        (side("source", "local"), "spec.source.archive.storeRef.name"),
        (side("target", "local"), "spec.target.archive.storeRef.name"),
        (
            {"source": {"storeRef": {"name": "archives"}, "scope": "in"}},
            "spec.source.storeRef.name",
        ),
        (
            {"target": {"storeRef": {"name": "archives"}, "scope": "in"}},
            "spec.target.storeRef.name",
        ),
        (side("target", "shelf"), "spec.target.archive.storeRef.name"),
    ],
)
def test_stores_that_are_no_good_are_named(
    threads: ThreadPoolExecutor, spec: dict[str, Any], field: str
) -> None:
    """Archives are not live streams, and only pods can read a volume."""
    decision = ScopeBench(threads, **spec).step()
    assert (said(decision), reason(decision)) == (STALLED, "InvalidSpec")
    assert message(decision).startswith(f"{field}: ")
    assert StartJob not in [type(action) for action in decision.actions]


@pytest.mark.parametrize(
    ("spec", "operations", "field", "words"),
    [
        (RESTORED, ["Create", "Append"], "spec.source.archive.storeRef.name", "Read"),
        (ARCHIVED, ["Read", "Append"], "spec.target.archive.storeRef.name", "Create"),
    ],
)
def test_archives_are_used_as_their_store_allows(
    threads: ThreadPoolExecutor,
    spec: dict[str, Any],
    operations: list[str],
    field: str,
    words: str,
) -> None:
    """Otherwise nothing begins, and the message names the field to change."""
    bench = ScopeBench(threads, **spec)
    bench.server.put(STREAM_STORE, changed(BUCKET, "spec.access", {"operations": operations}))
    decision = bench.step()
    assert reason(decision) == "AccessDenied"
    assert message(decision).startswith(f"{field}: ")
    assert words in message(decision)


def test_what_is_left_behind_of_archives_is_said(threads: ThreadPoolExecutor) -> None:
    """An event names the remains."""
    bench = ScopeBench(threads, **side("target", "local"))
    situation = bench.look()
    bench.perform(situation, Orphan("no way"))
    ((word, said),) = bench.said
    assert word == "Orphaned"
    assert said == (
        "the archives in backup/in in StreamStore 'local' may hold what is left of runs that are "
        f"not recorded of the copy {situation.seen.copy_id}: no way"
    )
