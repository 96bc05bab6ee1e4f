"""A driver of one copy that ends by SIGKILL at a chosen call to the target's store.

`python -m support.cut_driver FILE MADE CALL NUMBER` runs the copies of a file without Spark; right
before the NUMBERth call of this name is made, the process is killed. The names of the segments that
it is about to make are written to the file MADE, so that a test can ask what became of them.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from support.inline import run_copies

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluice.stores.base import Store
    from support.command import Copy
    from support.crash import Cut

SECONDS = 60.0


class Watched:
    """A store that tells of each call before it is made.

    Args:
        store: the store.
        told: told of the call's name and its first argument.
    """

    def __init__(self, store: Store, told: Callable[[str, object], None]) -> None:
        self._store = store
        self._told = told

    def __getattr__(self, name: str) -> Any:
        """A call of the store, or one of its values."""
        found = getattr(self._store, name)
        if not callable(found):
            return found

        def call(*args: Any, **kwargs: Any) -> Any:
            self._told(name, args[0] if args else None)
            return found(*args, **kwargs)

        return call


def drive(copy: Copy, made: Path, cut: Cut | None = None) -> int:
    """Run a driver in a process of its own; its exit code, -9 where it was cut off."""
    words = [str(copy.file), str(made), cut.call if cut else "", str(cut.number if cut else 0)]
    tests = Path(__file__).parents[1]
    paths = [str(tests), str(tests.parent / "hack"), str(tests.parent / "operator")]
    done = subprocess.run(
        [sys.executable, "-m", "support.cut_driver", *words],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode


def main(file: str, made: str, call: str, number: str) -> None:
    """Be the driver."""
    counts: Counter[str] = Counter()

    def told(name: str, first: object) -> None:
        counts[name] += 1
        if name == call and counts[name] == int(number):
            os.kill(os.getpid(), signal.SIGKILL)
        if name == "create":
            with Path(made).open("a") as log:
                log.write(f"{first}\n")

    for report in run_copies(Path(file).read_text(), lambda one: cast("Store", Watched(one, told))):
        assert report.error is None, report.error


if __name__ == "__main__":
    main(*sys.argv[1:])
