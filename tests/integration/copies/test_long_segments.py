"""Long segments that several tasks copy side by side. The hash script checks the result."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from segment_hash import segment_report
from support.command.sluice_command import Copy

if TYPE_CHECKING:
    from pathlib import Path

    from localstore import ForeignClient, Standalone

EVENTS, SIZE = 1200, 100_000
MIB = 1 << 20


@pytest.mark.exhaustive
def test_a_long_segment_is_copied_in_parts_side_by_side(
    tmp_path: Path, standalone: Standalone, scope: str, foreign: ForeignClient
) -> None:
    """Two tasks copy 120 MB of a segment in four parts. The target has the source's hash."""
    copy = Copy(tmp_path, standalone.controller_uri, (scope, "source"), (scope, "target"))
    foreign.create(*copy.source, segments=1)
    foreign.write(*copy.source, events=EVENTS, size=SIZE, keys=16)
    (planned,) = copy.run("plan", "-o", "json", "--tasks", "2").json
    (segment,) = planned["plan"]["streams"][0]["segments"]
    assert segment["cuts"] == [32 * MIB, 56 * MIB, 88 * MIB]
    (alone,) = copy.run("plan", "-o", "json", "--tasks", "1").json
    assert alone["plan"]["streams"][0]["segments"][0]["cuts"] == []
    ended = copy.run("run", "-o", "json", "--tasks", "2")
    assert ended.code == 0, ended.err
    (report,) = ended.json
    assert (report["events"], report["bytes"]) == (EVENTS, EVENTS * (SIZE + 8))
    source, target = (
        segment_report(*standalone.segment_store, *stream, 0)
        for stream in (copy.source, copy.target)
    )
    assert target["sha256"] == source["sha256"]
    assert target["chunks_sha256"] == source["chunks_sha256"] == report["segments"][0]["digest"]
    assert (target["events"], target["broken_at"]) == (EVENTS, None)
