"""Results of a scope in ConfigMaps: their names, their hash, and how many go into one."""

import json
import math

from hypothesis import given
from hypothesis import strategies as st

from sluice.api.status.scope_status import MOST_RESULTS
from sluice.core.reconcile.copies.statuses.results import (
    MOST_IN_SHARD,
    MOST_SHARD_BYTES,
    results_hash,
    results_name,
    shards,
)
from sluice.core.scope.scope import Counts, StreamResult, StreamState, counts_of
from sluice.core.values.trouble import Trouble
from sluice.core.workloads.scope_log import planned_results
from sluice.errors import StoreRejected
from support.reconcile.copies import UID
from support.reconcile.scope_copies import (
    PLAN,
    copied,
    failed,
    scope_plan,
    stopped,
    stream,
)


def test_names_tell_copies_and_shards_apart() -> None:
    """A copy that was made again has other names, and a long name fits."""
    assert results_name("shop", UID, 0).startswith("shop-results-")
    names = {results_name("shop", uid, number) for uid in ("a", "b") for number in (0, 1, 11)}
    assert len(names) == 6
    assert len(results_name("a" * 253, UID, MOST_RESULTS - 1)) <= 63
    assert ".-" not in results_name("a" * 39 + "." + "b" * 60, UID, 0)


def test_a_hash_tells_results_apart() -> None:
    """Another result, another order or another number of streams gives another hash."""
    results = (copied("a"), failed("b"))
    others = [
        (),
        results[:1],
        results[::-1],
        (copied("a", size=1), failed("b")),
        (copied("a"), failed("b", StoreRejected("no"))),
    ]
    hashes = {results_hash(some) for some in others}
    assert len(hashes) == len(others)
    assert results_hash(results) not in hashes
    assert results_hash(list(results)) == results_hash(results)


def test_a_plan_tells_what_is_known_of_each_stream_before() -> None:
    """The results are in the plan's order. Results of settled streams follow."""
    plan = scope_plan(stream("a", 3000), stream("b"), settled=(failed("c"), copied("d")))
    planned = StreamResult(stream="a", target="a", state=StreamState.PLANNED, bytes=3000, events=1)
    found = planned_results(plan)
    assert found[0] == planned
    assert [result.stream for result in found] == ["a", "b", "c", "d"]
    assert found[2:] == (failed("c"), copied("d"))


def test_streams_are_counted_by_their_state() -> None:
    """Planned streams count in the total alone."""
    results = (*planned_results(PLAN), copied("d"), failed("e"), failed("f"), stopped("g"))
    counts = counts_of(results)
    assert counts == Counts(total=7, copied=1, failed=2, stopped=1)
    assert counts.left == 3


def test_no_results_are_a_result() -> None:
    """One ConfigMap says that the list is empty."""
    assert shards(()) == ((),)


@given(st.integers(0, 3 * MOST_IN_SHARD), st.integers(0, 4000))
def test_every_result_is_in_one_shard_and_each_fits_a_config_map(count: int, words: int) -> None:
    """Results keep their order, and take as few shards as possible, for messages of any length."""
    bare = failed("s").model_copy(
        update={"trouble": Trouble.of(StoreRejected("x" * words, remedy="none"))}
    )
    results = [bare] * count
    found = shards(results)
    assert [result for shard in found for result in shard] == results
    for shard in found:
        assert len(shard) <= MOST_IN_SHARD
        sizes = [len(json.dumps(one.model_dump(mode="json", by_alias=True))) for one in shard]
        assert sum(sizes) <= MOST_SHARD_BYTES * 1.2
    if not words:
        assert len(found) == max(1, math.ceil(count / MOST_IN_SHARD))
