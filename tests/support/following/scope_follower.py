"""A follower of a whole scope as a process of its own, which a test may kill.

    python -m support.following.scope_follower CONTROLLER SOURCE TARGET --key KEY [--until-live]

Its last lines are the results of the streams in JSON, one a line, and why it is not over.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from sluice.core.scope.request import ScopeRequest
from sluice.core.scope.scope import StreamResult
from sluice.core.values.model import StoreAddress
from sluice.core.workloads.answers import Planned
from sluice.engine.scope.log import ScopeLog
from sluice.engine.scope.planning import resolve_scope
from sluice.engine.scope.report import ScopeReport
from sluice.engine.tasks.limits import Limits
from sluice.engine.workloads.scope import ScopeWorkload
from sluice.pipelines.programs.run import Tasks, run_plan
from sluice.pipelines.programs.stores import Stores
from support.following.follower import SETTINGS

if TYPE_CHECKING:
    from typing import IO

    from pyspark import SparkContext

    from sluice.core.follow.lag import Followed
    from sluice.core.values.wish import Wish

SCOPE_ID = "5f" * 16
TESTS = Path(__file__).parents[2]


def start(
    uri: str, source: str, target: str, output: IO[str], *options: str
) -> subprocess.Popen[str]:
    """Start a follower, which writes to `output`."""
    return subprocess.Popen(
        [sys.executable, "-m", "support.following.scope_follower", uri, source, target, *options],
        cwd=TESTS,
        env=os.environ | {"PYTHONPATH": ":".join(sys.path)},
        stdout=output,
        stderr=output,
        text=True,
    )


def wish(uri: str, target: str, how: Wish, key: str) -> bool:
    """Write how the copy of a scope is to end. Tell whether the copy accepts this wish."""
    with Stores(SETTINGS) as stores:
        log = ScopeLog(stores[StoreAddress(uri=uri)], SCOPE_ID, target)
        return log.load() is not None and log.wish(how, key)


def measured(uri: str, source: str, target: str) -> Followed:
    """Return the progress of a scope's copy, as the operator would measure it."""
    request = request_of(source, target)
    address = StoreAddress(uri=uri)
    with Stores(SETTINGS) as stores:
        store = stores[address]
        workload = ScopeWorkload(request)
        site = (address, store)
        answer = workload.ask([site], site, known=None, again=False)
        assert isinstance(answer, Planned)
        follow = workload.watch(answer.plan, store, [store]).measure().follow
        assert follow is not None
        return follow


def results_of(text: str) -> dict[str, StreamResult]:
    """Return the results that a follower has written, by stream."""
    lines = [line for line in text.splitlines() if line.startswith('{"stream"')]
    found = [StreamResult.model_validate_json(line) for line in lines]
    return {one.stream: one for one in found}


def request_of(source: str, target: str) -> ScopeRequest:
    """Return the request to follow a scope."""
    return ScopeRequest(
        scope_id=SCOPE_ID, source=source, target=target, make_scope=True, follow=True
    )


def _no_spark() -> SparkContext:
    raise AssertionError("a follower starts no Spark")


def main() -> int:
    """Follow a scope to its end. Return 0 if it is over."""
    parser = argparse.ArgumentParser()
    parser.add_argument("uri")
    parser.add_argument("source")
    parser.add_argument("target")
    parser.add_argument("--key", default="")
    parser.add_argument("--until-live", action="store_true")
    given = parser.parse_args()
    request = request_of(given.source, given.target)
    address = StoreAddress(uri=given.uri)
    with Stores(SETTINGS) as stores:
        store = stores[address]
        plan = resolve_scope(request, source=(address, store), target=(address, store)).plan
        tasks = Tasks(spark=_no_spark, settings=SETTINGS, here=True)
        report = run_plan(
            plan, stores, tasks, limits=Limits, key=given.key, until_live=given.until_live
        )
    assert isinstance(report, ScopeReport)
    for one in report.results:
        print(one.model_dump_json(exclude_defaults=True))  # noqa: T201 - for the test
    print(report.trouble)  # noqa: T201 - as above
    return 0 if report.is_over else 1


if __name__ == "__main__":
    sys.exit(main())
