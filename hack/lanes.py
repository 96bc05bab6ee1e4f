"""Run the tests in lanes side by side. tests/conftest.py assigns each test to a lane.

python hack/lanes.py [PYTEST'S OPTIONS]

One lane more runs at a time than most machines have processors, because most tests wait now and
then. With five at a time, stores that idle and caches that are cold cost a sixth of the time.
Lanes that need a Kubernetes begin once it is up. Each line of pytest's output follows its lane's
name. Failures are repeated at the end, and a last line counts all lanes together.
`artifacts/LANE.xml` has the duration of each test in JUnit's format. The next run estimates the
time left from it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from localstore import LocalStoreError, Standalone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from concurrent.futures import Future

LANES = {
    "pods": ("tests/e2e",),
    "stores": ("tests/integration",),
    "outside": ("tests/integration", "tests/e2e"),
    "table": ("tests/e2e/crash",),
    "api": ("tests/integration",),
    "alone": ("tests/e2e",),
    "unit": ("tests/unit",),
    "engine": ("tests/unit/engine",),
    "packaging": ("tests/integration/packaging",),
}
"""The folders with the tests of each lane. Lanes begin in this order: the longest ones first, and
at the end those that never wait, so that no processor idles before the end of the last one."""

SHARED_STORE = "SLUICE_TESTS_STORE"
"""The variable that names the folder of the store that lanes share."""

_ON_STORE = ("stores", "outside")
_ON_KUBERNETES = ("pods", "outside", "alone", "api")
_SEARCHING = ("engine", "unit", "api")
"""The lanes with tests by Hypothesis. Its plugin reads all of Sluice's code when a lane starts."""
_AT_A_TIME = 3
"""The number of lanes that run at a time."""
_ROOT = Path(__file__).parents[1]
_ARTIFACTS = _ROOT / "artifacts"
_COUNT = re.compile(r"(\d+) (failed|errors?|passed|skipped|deselected|xfailed|xpassed|warnings?)")
_LAST = re.compile(r"^=* ?\d+ .* in [0-9.]+s")
_BEGUN = re.compile(r"(tests/[\w/]+)\.py\b")
_NOTHING_TO_RUN = 5
_SECONDS_BETWEEN_SIGNS = 60.0
_terminal = threading.Lock()
_interrupted = threading.Event()


@dataclass
class Lane:
    """One run of pytest, whose lines are printed.

    Attributes:
        name: the lane's name.
        failed: pytest's lines about failures.
        counts: number of tests by outcome.
        code: pytest's exit code.
        summing_up: whether pytest has begun its summary.
        usual: seconds that each module took in an earlier run.
        ahead: the modules in `usual` that have not begun.
    """

    name: str
    failed: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    code: int = 1
    summing_up: bool = False
    usual: Mapping[str, float] = field(default_factory=dict)
    ahead: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Read the durations of an earlier run."""
        self.usual = _durations(_ARTIFACTS / f"{self.name}.xml")
        self.ahead = set(self.usual)

    @property
    def left(self) -> float:
        """The seconds, in an earlier run, of the modules that have not begun."""
        return sum(self.usual[module] for module in self.ahead)

    def run(self, arguments: list[str]) -> None:
        """Run the lane to its end, unless Ctrl-C came before."""
        if _interrupted.is_set():
            return
        options = [f"--lane={self.name}", "--durations=12", "--durations-min=10"]
        if self.name not in _SEARCHING:
            options += ["-p", "no:hypothesispytest"]
        report = f"--junitxml={_ARTIFACTS / self.name}.xml"
        words = ["-m", "pytest", *options, report, *arguments, *LANES[self.name]]
        self.code = _run(words, self.take)

    def take(self, line: str) -> None:
        """Print a line of pytest and evaluate it."""
        if not line:
            return
        with _terminal:
            print(f"{self.name:9} | {line}", flush=True)
        self.summing_up |= "short test summary info" in line
        if begun := _BEGUN.match(line):
            self.ahead.discard(begun[1])
        if self.summing_up and line.startswith(("FAILED ", "ERROR ")):
            self.failed.append(line)
        elif _LAST.match(line):
            found = ((kind.rstrip("s"), int(number)) for number, kind in _COUNT.findall(line))
            self.counts.update(dict(found))


def _run(words: list[str], take: Callable[[str], None], **environment: str) -> int:
    """Run Python with these arguments, pass each line to `take`, and return the exit code."""
    command = [sys.executable, "-u", *words]
    # In our process group, so that it gets Ctrl-C.
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=os.environ | environment,
    ) as child:
        for line in child.stdout or ():
            take(line.rstrip())
    return child.returncode


@contextmanager
def _kubernetes(take: Callable[[str], None]) -> Iterator[None]:
    """Provide a Kubernetes with Sluice's image. Stop it afterwards if it did not run before.

    Without a Kubernetes the tests fail and say why.

    Args:
        take: callback that prints a line.
    """
    there = _cluster("status")
    if not there:
        _cluster("up", take=take)
    # Most of these tests need the image, and a build beside all lanes takes four times as long.
    _cluster("image", "localhost/sluice", str(_ROOT), take=take)
    yield
    _cluster("tidy" if there else "down", take=take)


def _keep_store(store: Standalone, needed: list[Future[None]]) -> None:
    """Run the store that lanes share until these lanes have ended.

    Without the store their tests fail. A start takes 15 s of processor time, and each idle minute
    takes 3 s.
    """
    try:
        store.start()
    except LocalStoreError as error:
        with _terminal:
            print(f"the store of the lanes {_ON_STORE} does not start: {error}", flush=True)
        return
    try:
        wait(needed)
    finally:
        store.stop()


def _run_all(lanes: list[Lane], arguments: list[str]) -> None:
    """Run the lanes in their order, some at a time, and wait for the ends of all."""
    up = threading.Event()

    def run(lane: Lane) -> None:
        if lane.name in _ON_KUBERNETES:
            up.wait()
        lane.run(arguments)

    with (
        tempfile.TemporaryDirectory(prefix="sluice-tests-") as folder,
        ThreadPoolExecutor(_AT_A_TIME) as pool,
    ):
        store = Standalone(Path(folder) / "store")
        os.environ[SHARED_STORE] = str(store.data)
        runs = {lane.name: pool.submit(run, lane) for lane in lanes}
        needed = [runs[name] for name in _ON_STORE]
        keeping = threading.Thread(target=_keep_store, args=(store, needed))
        keeping.start()
        try:
            with _kubernetes(next(one.take for one in lanes if one.name in _ON_KUBERNETES)):
                up.set()
                wait([runs[name] for name in _ON_KUBERNETES])
        finally:
            up.set()
            keeping.join()
    for done in runs.values():
        done.result()  # raises a lane's exception


def _durations(report: Path) -> dict[str, float]:
    """Return the seconds that each module took, from pytest's report. Empty without a report."""
    found: defaultdict[str, float] = defaultdict(float)
    with suppress(FileNotFoundError, ET.ParseError):
        for case in ET.parse(report).iter("testcase"):  # noqa: S314 - our own file
            found[_module(case.get("classname", ""))] += float(case.get("time", 0))
    return dict(found)


def _module(name: str) -> str:
    """Return a module's path from its dotted name in a report, which may end with a class."""
    parts = name.split(".")
    last = next((at for at, part in enumerate(parts) if part.startswith("test_")), len(parts))
    return "/".join(parts[: last + 1])


def _tell_progress(lanes: list[Lane], over: threading.Event) -> None:
    """Print the estimated time left once a minute, if there was an earlier run."""
    began = time.monotonic()
    usual = sum(sum(lane.usual.values()) for lane in lanes)
    while not over.wait(_SECONDS_BETWEEN_SIGNS):
        spent = time.monotonic() - began
        ahead = sum(lane.left for lane in lanes)
        if ahead < usual:
            left = spent * ahead / (usual - ahead)
            with _terminal:
                print(f"{spent / 60:.0f} min, about {left / 60:.0f} more", flush=True)


def _next(*, failed: bool) -> str:
    """Return hints on the next steps. They precede the last line, which has the counts."""
    lines = [f"How long each test took: {_ARTIFACTS.relative_to(_ROOT)}/LANE.xml."]
    if failed:
        lines.append("One test alone, with the files it leaves: .venv/bin/pytest PATH::NAME.")
    if _cluster("status"):
        lines.append("The Kubernetes that was there still runs; make cluster-down stops ours.")
    return "\n".join(lines)


def _cluster(*words: str, take: Callable[[str], None] = lambda _: None) -> bool:
    """Run a command of `localcluster` and tell whether it succeeded."""
    return _run(["-m", "localcluster", *words], take, PYTHONPATH=str(_ROOT / "hack")) == 0


def main() -> int:
    """Run all lanes and print the results. Return 0 if nothing failed."""
    began = time.monotonic()
    whole = "crash" in sys.argv  # else another lane has the few cells of the table
    lanes = [Lane(name) for name in LANES if whole or name != "table"]
    over = threading.Event()
    threading.Thread(target=_tell_progress, args=(lanes, over), daemon=True).start()
    running = threading.Thread(target=_run_all, args=(lanes, sys.argv[1:]))
    running.start()
    try:
        running.join()
    except KeyboardInterrupt:  # pytest gets it as well and cleans up
        _interrupted.set()
        running.join()
    over.set()
    print()
    for lane in lanes:
        if lane.code not in (0, 1, _NOTHING_TO_RUN):
            print(f"the lane {lane.name!r} ended with exit code {lane.code}: see its lines above")
        print("\n".join(lane.failed), end="\n" if lane.failed else "")
    total = sum((lane.counts for lane in lanes), Counter())
    del total["deselected"]  # each lane deselects the tests of the others
    print(_next(failed=any(lane.failed for lane in lanes)))
    counts = ", ".join(f"{number} {kind}" for kind, number in total.items())
    print(f"{counts or 'no tests'} in {time.monotonic() - began:.0f} s")
    codes = {lane.code for lane in lanes}  # some lanes may have no tests to run, but not all
    return 0 if 0 in codes and codes <= {0, _NOTHING_TO_RUN} else 1


if __name__ == "__main__":
    sys.exit(main())
