"""Scopes of thousands of streams: a plan takes seconds, and little memory."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final
from uuid import uuid4

import pytest

from support.command.scope_command import Planned, ScopeCopy, plan

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from localstore import ForeignClient, Standalone

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(1800)]

FEW: Final = 100
MANY: Final = 5000
AT_ONCE: Final = 16
"""Streams of one scope that a store makes at the same time."""

DEADLINE: Final = 600.0
MOST: Final = 40_000
"""Bytes of memory that each further stream takes: its plan, as an object and as text."""


def test_a_plan_of_5000_streams_takes_little_memory(
    tmp_path: Path, standalone: Standalone, foreign: ForeignClient, say: Callable[[str], None]
) -> None:
    """A plan has all 5000 streams. Peak memory grows only by the plans of the streams."""
    scopes = {count: f"wide-{count}-{uuid4().hex[:6]}" for count in (FEW, MANY)}
    for count, scope in scopes.items():
        begun = time.monotonic()
        foreign.create_many(scope, "stream-", count, threads=AT_ONCE)
        say(f"  {count:,} streams were made in {time.monotonic() - begun:.0f} s")
    few, many = (_planned(tmp_path, standalone, scopes[count]) for count in (FEW, MANY))
    for count, planned in ((FEW, few), (MANY, many)):
        assert planned.code == 0
        assert len(planned.found["streams"]) == count
        say(f"  {count:,} streams: {planned.seconds:.1f} s, {planned.peak / 1e6:.0f} MB at most")
    grown = (many.peak - few.peak) / (MANY - FEW)
    say(f"  {grown / 1000:.1f} kB for each stream")
    assert grown <= MOST


def _planned(folder: Path, standalone: Standalone, scope: str) -> Planned:
    spec = {"target": {"scopePolicy": "CreateIfAbsent"}}
    copy = ScopeCopy(folder, standalone.controller_uri, scope, f"{scope}-copy", spec=spec)
    return plan(copy, seconds=DEADLINE)
