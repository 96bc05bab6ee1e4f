"""A driver of one copy that ends by SIGKILL right before a chosen call to the target's store."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import Counter
from typing import TYPE_CHECKING, Any, cast

from support.store.inline import run_copies

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection
    from pathlib import Path

    from sluice.stores.base import Store
    from support.command.sluice_command import Copy
    from support.engine.append_points import Cut

SECONDS = 240.0
"""Seconds after which a driver counts as hung."""

PATIENCE = 60.0
"""Seconds of patience with a busy store. One call may last as long, and be made again."""

# Forked from a process that has imported all and connected nowhere: drivers start at once.
_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload([__name__])


class Watched:
    """A store that reports each call before it is made.

    Args:
        store: the store.
        told: callback with the call's name and its first argument.
    """

    def __init__(self, store: Store, told: Callable[[str, object], None]) -> None:
        self._store = store
        self._told = told

    def __getattr__(self, name: str) -> Any:
        """Return a method of the store that reports its calls, or another attribute."""
        found = getattr(self._store, name)
        if not callable(found):
            return found

        def call(*args: Any, **kwargs: Any) -> Any:
            self._told(name, args[0] if args else None)
            return found(*args, **kwargs)

        return call


def drive(copy: Copy, made: Path, cut: Cut | None = None) -> None:
    """Run a driver in a process of its own, to its end or to its cut.

    Args:
        copy: the copy, run without Spark.
        made: file for the names of the segments that the driver is about to make.
        cut: the call at which the driver ends; None for no cut.

    Raises:
        AssertionError: the driver ended otherwise; the message has its reports.
    """
    reader, writer = _PROCESSES.Pipe(duplex=False)
    driver = _PROCESSES.Process(
        target=_be_driver,
        args=(
            copy.file.read_text(),
            made,
            writer,
            cut.call if cut else "",
            cut.number if cut else 0,
        ),
    )
    driver.start()
    writer.close()
    driver.join(SECONDS)
    if driver.exitcode is None:
        driver.kill()
        raise AssertionError(f"the driver did not end within {SECONDS:g} s")
    try:
        said = reader.recv()
    except EOFError:
        said = "nothing"
    expected = -signal.SIGKILL if cut else 0
    assert driver.exitcode == expected, f"exit code {driver.exitcode}; the driver said: {said}"


def _be_driver(text: str, made: Path, writer: Connection, call: str, number: int) -> None:
    counts: Counter[str] = Counter()

    def told(name: str, first: object) -> None:
        counts[name] += 1
        if name == call and counts[name] == number:
            os.kill(os.getpid(), signal.SIGKILL)
        if name == "create":
            with made.open("a") as log:
                log.write(f"{first}\n")

    reports = run_copies(text, lambda one: cast("Store", Watched(one, told)), patience=PATIENCE)
    writer.send(f"{reports} after {dict(counts)}")
    assert all(report.error is None for report in reports)
