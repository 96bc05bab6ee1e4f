"""The runner of a phase: its sides take turns, pair after pair."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from bench.lab import Lab
from bench.model import Result
from bench.usage import cores, machine_cpu_seconds

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.model import Phase, Run, Side


def measure(phase: Phase, pairs: int, say: Callable[[str], None]) -> list[Result]:
    """Measure a phase's comparisons on a store of its own.

    Args:
        phase: the phase to run.
        pairs: number of turns of each side.
        say: callback for progress messages.
    """
    runs: dict[str, list[Run]] = {side.name: [] for side in phase.sides}
    with Lab(say) as lab:
        for pair in range(1, pairs + 1):
            if lab.make_room(sum(side.source.bytes for side in phase.sides)):
                for side in phase.rehearsed:
                    say(f"rehearsal: {_told(side, _take_turn(side, lab))}")
            said = []
            for side in phase.sides:
                run = _take_turn(side, lab)
                runs[side.name].append(run)
                said.append(_told(side, run))
            say(f"{pair} of {pairs}: {', '.join(said)}")
    return [
        Result(comparison, tuple(runs[comparison.ours]), tuple(runs[comparison.theirs]))
        for comparison in phase.comparisons
    ]


def _take_turn(side: Side, lab: Lab) -> Run:
    side.prepare(lab)
    lab.settle()
    with lab.target(side.source) as target:
        begin, busy, store = time.monotonic(), machine_cpu_seconds(), lab.cpu_seconds
        run = side.run(lab, target)
        others = machine_cpu_seconds() - busy - (lab.cpu_seconds - store) - run.cpu
        available = (time.monotonic() - begin) * cores()
        lab.settle()  # counts the store's deferred work, for fast sides too
        store = lab.cpu_seconds - store
    return replace(run, store_cpu=store, others=max(0.0, others / available))


def _told(side: Side, run: Run) -> str:
    again = f", {run.retries} retries" if run.retries else ""
    return f"{side.name} {run.seconds:.2f} s ({run.speed:.0f} MB/s{again})"
