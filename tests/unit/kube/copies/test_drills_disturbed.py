"""Restore drills among forged objects, and while their store is unreachable or deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from sluice.core.reconcile.copies.actions import DeleteDrill, StartJob
from sluice.kube.api.kinds import STREAM_ARCHIVE, STREAM_COPY, STREAM_STORE
from sluice.kube.api.slim import slim
from sluice.kube.stores.dependents import StorePlace, stores_of
from support.cases.resources import BUCKET, STORE, changed
from support.kube.drill_bench import NAME, SCRATCH, SPARE, WEEKLY, DrillBench, started

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor


@pytest.fixture
def bench(threads: ThreadPoolExecutor) -> DrillBench:
    """Return an archive with a run, at rest."""
    return DrillBench(threads)


def test_a_copy_of_the_name_that_is_no_drill_is_not_touched(bench: DrillBench) -> None:
    """This holds even if its owner reference claims a drill."""
    meta = {"name": NAME, "uid": "other", "generation": 1}
    meta["ownerReferences"] = [{"controller": True, "uid": bench.body["metadata"]["uid"]}]
    spec = {
        "source": {"storeRef": {"name": "local"}, "scope": "in", "stream": "orders"},
        "target": {"storeRef": {"name": "local"}, "scope": "in", "stream": "precious"},
    }
    body = {"apiVersion": "sluice.dev/v1alpha1", "kind": "StreamCopy", "metadata": meta}
    bench.server.put(STREAM_COPY, body | {"spec": spec})
    bench.due()
    bench.settle()
    assert "delete it" in bench.verdict[2]
    assert bench.copy is not None
    assert bench.copy["metadata"]["uid"] == "other"


def forged(bench: DrillBench, **target: Any) -> dict[str, Any]:
    """Return a StreamCopy that a user has made as if it were the drill's."""
    started(bench)
    made = bench.server.body(STREAM_COPY, NAME)
    assert made is not None
    bench.server.objects.pop((STREAM_COPY.name, "default", NAME))
    spec = made["spec"] | {"target": made["spec"]["target"] | target}
    body: dict[str, Any] = made | {"spec": spec}
    bench.server.put(STREAM_COPY, body)
    return body


@pytest.mark.parametrize(
    "target",
    [
        {"storeRef": {"name": "local", "namespace": "other"}},
        {"storeRef": {"name": "spare"}},
        {"scope": "elsewhere"},
    ],
)
@pytest.mark.parametrize("lost", [False, True])
def test_a_forged_copy_leads_the_operator_to_no_other_store(
    bench: DrillBench, target: dict[str, Any], *, lost: bool
) -> None:
    """This holds during a drill, with a lost status, and when the archive is deleted."""
    forged(bench, **target)
    if lost:
        bench.body["status"].pop("drill")
    bench.step()
    noted = bench.drill
    assert (noted.store, noted.scope) in {("local", "in"), ("", "")}
    decision = bench.delete()
    assert DeleteDrill() not in decision.actions
    assert bench.copy is not None
    archive = bench.server.body(STREAM_ARCHIVE, "orders")
    assert archive is None or archive["metadata"]["finalizers"] == []


def test_a_place_in_another_namespace_is_never_used(bench: DrillBench) -> None:
    """This holds even if the status says that the scratch stream is there."""
    bench.server.put(STREAM_STORE, changed(STORE, "metadata", {"name": "s", "namespace": "other"}))
    noted = {"scratch": True, "store": "other/s", "scope": "in", "result": "Passed"}
    bench.body["status"]["drill"] = noted | {"completionTime": "2026-01-02T00:00:00Z"}
    asked: list[str] = []

    async def get(namespace: str, _: object) -> object:
        asked.append(namespace)
        return bench.store

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bench, "get", get)
        bench.step()
    assert asked == []
    assert not bench.drill.scratch


def test_the_place_that_is_noted_stays_when_the_archive_is_deleted(bench: DrillBench) -> None:
    """The scratch stream is in that place only."""
    started(bench)
    before = bench.drill
    bench.delete()
    assert (bench.drill.store, bench.drill.scope) == (before.store, before.scope)


def away_with_a_run_due(bench: DrillBench) -> list[type]:
    """Ask for a run, and return the archive's actions within some looks."""
    bench.ask("now")
    done: list[type] = []
    for _ in range(4):
        done += [type(one) for one in bench.step().actions]
        bench.copy_step()
    return done


def test_runs_go_on_while_the_scratch_store_is_away(threads: ThreadPoolExecutor) -> None:
    """The StreamCopy has no plan then, and never reports that it is suspended."""
    bench = DrillBench(threads, verify=SPARE)
    bench.due()
    bench.step()
    bench.away = True
    bench.copy_step()
    assert StartJob in away_with_a_run_due(bench)


def test_runs_go_on_when_a_right_is_withdrawn(threads: ThreadPoolExecutor) -> None:
    """The StreamCopy waits for the right, and never reports that it is suspended."""
    bench = DrillBench(threads, verify=SPARE)
    bench.due()
    bench.step()
    store = bench.server.body(STREAM_STORE, "spare")
    assert store is not None
    bench.server.put(STREAM_STORE, changed(store, "spec.access", {"operations": ["Read"]}))
    bench.copy_step()
    assert StartJob in away_with_a_run_due(bench)


def test_a_drill_that_is_stalled_before_its_first_attempt_could_not_run(
    threads: ThreadPoolExecutor,
) -> None:
    """The condition names the cause, runs go on, and the StreamCopy is deleted."""
    bench = DrillBench(threads, verify=SPARE)
    bench.due()
    bench.step()
    bucket = changed(BUCKET, "metadata", {"name": "spare", "uid": "spare"})
    bench.server.put(STREAM_STORE, bucket)
    bench.copy_step()
    assert StartJob in away_with_a_run_due(bench)
    assert bench.verdict[1] == "DrillNotRun"
    assert "'spare'" in bench.verdict[2]


def test_runs_go_on_while_a_drill_cannot_be_cleaned(threads: ThreadPoolExecutor) -> None:
    """The drill's StreamCopy is being deleted and waits for the store."""
    bench = DrillBench(threads, verify=SPARE)
    started(bench)
    bench.away = True
    bench.due()
    bench.step()
    assert bench.drill.result == "NotRun"
    bench.copy_step()
    assert bench.copy is not None
    assert StartJob in away_with_a_run_due(bench)
    assert bench.copy is not None


def test_a_drill_does_not_begin_while_its_store_is_away(threads: ThreadPoolExecutor) -> None:
    """The message names the cause, and the drill begins when the store answers."""
    bench = DrillBench(threads, verify=SPARE)
    bench.away = True
    bench.due()
    bench.step()
    assert (bench.copy, bench.drill.scratch) == (None, False)
    assert "away" in bench.verdict[2]
    bench.away = False
    bench.step()
    assert bench.copy is not None


def cleaning(threads: ThreadPoolExecutor) -> DrillBench:
    """Return a bench whose drill ended in a StreamStore that was then deleted and replaced."""
    bench = DrillBench(threads, verify=SPARE)
    started(bench)
    bench.restore()
    bench.copy_step()
    while bench.copy is not None:
        bench.step()
        bench.copy_step()
    bench.body["spec"]["verify"] = WEEKLY
    return bench


def test_the_store_of_a_scratch_stream_is_in_use(threads: ThreadPoolExecutor) -> None:
    """This holds after another store is named for drills, and in the mirror."""
    bench = cleaning(threads)
    place = StorePlace("default", "spare")
    assert place in stores_of(slim(STREAM_ARCHIVE, bench.body))
    bench.finish()
    assert place not in stores_of(slim(STREAM_ARCHIVE, bench.body))


def test_a_scratch_stream_whose_store_is_gone_is_reported(threads: ThreadPoolExecutor) -> None:
    """The report comes after a while: the StreamStore may be made again."""
    bench = cleaning(threads)
    bench.server.objects.pop((STREAM_STORE.name, "default", "spare"))
    bench.step()
    assert bench.drill.scratch
    assert [one for one, _ in bench.said] == ["DrillPassed"]
    bench.said.clear()
    drill = bench.body["status"]["drill"]
    bench.body["status"]["drill"] = drill | {"completionTime": "2026-01-02T00:00:00Z"}
    bench.settle()
    assert not bench.drill.scratch
    ((reason, message),) = bench.said
    assert reason == "Orphaned"
    assert str(SCRATCH) in message
    assert "left behind" in (bench.drill.message or "")
    assert bench.body["metadata"]["finalizers"] == []


def test_a_drill_that_never_began_gives_way_to_the_next(threads: ThreadPoolExecutor) -> None:
    """The drill's StreamStore was deleted before the StreamCopy was made."""
    bench = DrillBench(threads, verify=SPARE)
    bench.due()
    situation = bench.look()
    bench.body["status"] = bench.workings.decide(situation).status.dump()
    bench.server.objects.pop((STREAM_STORE.name, "default", "spare"))
    bench.step()
    assert bench.drill.result is None
    bench.due()
    bench.step()
    assert bench.drill.result == "NotRun"


def test_a_foreign_copy_of_the_name_keeps_no_archive(bench: DrillBench) -> None:
    """The foreign copy writes to another stream, so the scratch stream can be deleted."""
    started(bench)
    bench.restore()
    bench.copy_step()
    while bench.copy is not None:
        bench.step()
        bench.copy_step()
    assert bench.scratch()
    spec = {
        "source": {"storeRef": {"name": "local"}, "scope": "in", "stream": "orders"},
        "target": {"storeRef": {"name": "local"}, "scope": "in", "stream": "precious"},
    }
    body = {"apiVersion": "sluice.dev/v1alpha1", "kind": "StreamCopy", "spec": spec}
    bench.server.put(STREAM_COPY, body | {"metadata": {"name": NAME, "uid": "foreign"}})
    bench.delete()
    archive = bench.server.body(STREAM_ARCHIVE, "orders")
    assert archive is None or archive["metadata"]["finalizers"] == []
    assert not bench.scratch()
