"""A follower of a stream as a process of its own, which a test may kill.

    python -m support.following.follower CONTROLLER SCOPE/SOURCE SCOPE/TARGET [--record] [--every S]
        [--controls FILE] [--key KEY]

The process ends when the source is sealed and followed to its end, or by a written wish. Its last
lines are the reason of its end and the outcome.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from sluice.config import Settings, StoreTimeouts
from sluice.core.copy.planner import CopyRequest, SourceRequest
from sluice.core.values.model import StoreAddress, StreamName
from sluice.engine.copy.abort import finish_abort
from sluice.engine.copy.planning import resolve
from sluice.engine.follow import wishes
from sluice.engine.follow.work import FollowWork
from sluice.engine.journal.copy_journal import CopyJournal
from sluice.engine.tasks.executor import InlineExecutor
from sluice.engine.tasks.runner import Runner
from sluice.pipelines.driver.controls import Controls
from sluice.pipelines.programs.stores import Stores
from support.engine.plans import COPY

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import IO

    from sluice.core.values.wish import Wish
    from sluice.engine.copy.report import StreamReport
    from sluice.stores.base import Store

TESTS = Path(__file__).parents[2]
SETTINGS = Settings(timeouts=StoreTimeouts(connect=10, call=20, stall=20))

EVERY = 1.0
"""Seconds after which appended bytes are compared."""


def follow(
    uri: str,
    source: StreamName,
    target: StreamName,
    *,
    record: bool = False,
    every: float = EVERY,
    controls: Path | None = None,
    key: str = "",
    seen_as: Callable[[Store], Store] = lambda one: one,
) -> StreamReport | None:
    """Follow a stream to its end, in this process. Return None if an earlier run did so.

    Args:
        uri: the controller of both streams.
        source: the stream.
        target: its target.
        record: whether to go on without bytes that the source loses.
        every: seconds after which appended bytes are compared.
        controls: the file with the present limits; None for no limits.
        key: the key of the copy's owner, who may have the source sealed.
        seen_as: function from the target's store to the store that replaces it.
    """
    request = CopyRequest(
        copy_id=COPY,
        sources=(SourceRequest(stream=source),),
        target=target,
        on_truncation="Record" if record else "Fail",
        follow=True,
    )
    with Stores(SETTINGS) as stores:
        store = stores[StoreAddress(uri=uri)]
        finish_abort(request.copy_id, target, store)
        plan = resolve(request, [store], store).plan
        if plan is None:
            return None
        limits = Controls(controls)
        work = FollowWork(plan, [store], seen_as(store), every=every, limits=limits, key=key)
        executor = InlineExecutor([store], store)
        (report,) = Runner([work], executor=executor, limits=limits).run()
    return report


def wish(uri: str, target: StreamName, how: Wish, key: str) -> bool:
    """Write how a copy is to end. Tell whether the copy accepts this wish."""
    with Stores(SETTINGS) as stores:
        return wishes.write(how, CopyJournal(stores[StoreAddress(uri=uri)], COPY, target), key=key)


def start(
    uri: str, source: tuple[str, str], target: tuple[str, str], output: IO[str], *options: str
) -> subprocess.Popen[str]:
    """Start a follower, which writes to `output`."""
    words = [uri, "/".join(source), "/".join(target), *options]
    return subprocess.Popen(
        [sys.executable, "-m", "support.following.follower", *words],
        cwd=TESTS,
        env=os.environ | {"PYTHONPATH": ":".join(sys.path)},
        stdout=output,
        stderr=output,
        text=True,
    )


def _stream(text: str) -> StreamName:
    scope, stream = text.split("/")
    return StreamName(scope=scope, stream=stream)


def main() -> int:
    """Follow a stream to its end. Return 1 if the copy failed, else 0."""
    parser = argparse.ArgumentParser()
    parser.add_argument("uri")
    parser.add_argument("source", type=_stream)
    parser.add_argument("target", type=_stream)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--every", type=float, default=EVERY)
    parser.add_argument("--controls", type=Path)
    parser.add_argument("--key", default="")
    report = follow(**vars(parser.parse_args()))
    if report is not None and report.error is not None:
        print(f"{report.error.reason}: {report.error.message}")  # noqa: T201 - for the test
        return 1
    print(f"ended: {report and report.ended}")  # noqa: T201 - for the test
    print("AlreadyComplete" if report is None else report.outcome.value)  # noqa: T201 - as above
    return 0


if __name__ == "__main__":
    sys.exit(main())
