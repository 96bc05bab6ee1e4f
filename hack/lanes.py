"""Runs the tests in two lanes side by side: those with a Kubernetes or end to end, and all others.

python hack/lanes.py [PYTEST'S ARGUMENTS]

A third lane made nothing faster: two processors have no more to give, and tests of the others
waited in vain. Each line that pytest prints comes with its lane's name; what failed comes once more
at the end, and a last line counts both lanes together. How long each test took is in
`artifacts/LANE.xml`, as JUnit has it.
"""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

LANES = ("cluster", "store")
_ARTIFACTS = Path(__file__).parents[1] / "artifacts"
_COUNT = re.compile(r"(\d+) (failed|errors?|passed|skipped|deselected|xfailed|xpassed|warnings?)")
_LAST = re.compile(r"^=* ?\d+ .* in [0-9.]+s")
_NOTHING_TO_RUN = 5
_terminal = threading.Lock()


@dataclass
class Lane:
    """One run of pytest, whose lines are passed on.

    Attributes:
        name: which tests.
        failed: its lines on what failed.
        counts: how many tests ended how.
        code: its exit code.
        summing_up: whether pytest has begun to.
    """

    name: str
    failed: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    code: int = 1
    summing_up: bool = False

    def run(self, arguments: list[str]) -> None:
        """Run it to its end."""
        options = [f"--lane={self.name}", "--durations=12", "--durations-min=10"]
        report = f"--junitxml={_ARTIFACTS / self.name}.xml"
        command = [sys.executable, "-u", "-m", "pytest", *options, report, *arguments]
        # In our process group, so that it is told of Ctrl-C.
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        ) as child:
            for line in child.stdout or ():
                self.take(line.rstrip())
        self.code = child.returncode

    def take(self, line: str) -> None:
        """Pass a line on, and see what it says."""
        if not line:
            return
        with _terminal:
            print(f"{self.name:7} | {line}", flush=True)
        self.summing_up |= "short test summary info" in line
        if self.summing_up and line.startswith(("FAILED ", "ERROR ")):
            self.failed.append(line)
        elif _LAST.match(line):
            found = ((kind.rstrip("s"), int(number)) for number, kind in _COUNT.findall(line))
            self.counts.update(dict(found))


def main() -> int:
    """Run both, and say what came of them; an exit code of 0 if nothing failed in either."""
    began = time.monotonic()
    lanes = [Lane(name) for name in LANES]
    threads = [threading.Thread(target=lane.run, args=(sys.argv[1:],)) for lane in lanes]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    except KeyboardInterrupt:  # pytest has got it as well, and cleans up
        for thread in threads:
            thread.join()
    print()
    for lane in lanes:
        if lane.code not in (0, 1, _NOTHING_TO_RUN):
            print(f"the lane {lane.name!r} ended with exit code {lane.code}: see its lines above")
        print("\n".join(lane.failed), end="\n" if lane.failed else "")
    total = sum((lane.counts for lane in lanes), Counter())
    del total["deselected"]  # each lane leaves out the other one's
    counts = ", ".join(f"{number} {kind}" for kind, number in total.items())
    print(f"{counts or 'no tests'} in {time.monotonic() - began:.0f} s")
    codes = {lane.code for lane in lanes}  # one lane may have nothing to run, both not
    return 0 if 0 in codes and codes <= {0, _NOTHING_TO_RUN} else 1


if __name__ == "__main__":
    sys.exit(main())
