"""The checkpoint of a query that Arrow runs: what is left of it whenever a process ends."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pyarrow as pa
import pytest

from sluice.core.query.arrow.event_times import EventTimes
from sluice.core.query.ledger import Checkpoint
from sluice.errors import CheckpointDiverged, InfrastructureError
from sluice.pipelines.query.arrow.checkpoint import ArrowCheckpoint, PlannedOffset, Snapshot
from support.engine.queries import position

SCHEMA = pa.schema([("window", pa.int64()), ("k0", pa.string())])


def planned(batch: int, beat: int = 0) -> PlannedOffset:
    """Return a batch that is planned."""
    offset = position(batch * 10)
    return PlannedOffset(batch, offset | ({"beat": beat} if beat else {}), batch * 1000)


def times() -> EventTimes:
    """Return the times of some events."""
    found = EventTimes()
    found.see(0, pa.array([7_000_000], pa.int64()))
    found.see(1, pa.array([], pa.int64()))
    return found


def same(found: Snapshot | None, expected: Snapshot) -> bool:
    """Tell whether a state was read as it was written."""
    return (
        found is not None
        and found[:-1] == expected[:-1]
        and found.times.to_json() == expected.times.to_json()
    )


def snapshot(batch: int) -> Snapshot:
    """Return the state behind a batch."""
    windows = pa.table({"window": [batch], "k0": ["a"]}, schema=SCHEMA)
    return Snapshot(*planned(batch), windows, times())


@pytest.fixture
def checkpoint(tmp_path: Path) -> ArrowCheckpoint:
    """Return the checkpoint of version 1."""
    return ArrowCheckpoint(tmp_path, 1)


def again(checkpoint: ArrowCheckpoint) -> ArrowCheckpoint:
    """Return the checkpoint as the next process sees it."""
    checkpoint.close()
    return ArrowCheckpoint(checkpoint.path.parent, 1)


def test_nothing_is_there_at_first(checkpoint: ArrowCheckpoint) -> None:
    """A version without a folder has no checkpoint."""
    assert checkpoint.look() == Checkpoint()
    assert checkpoint.read(SCHEMA) == (None, [])


def test_plans_and_the_last_state_are_read_back(checkpoint: ArrowCheckpoint) -> None:
    """Batches behind the last state are read again. Older files are deleted."""
    for batch in range(3):
        checkpoint.plan(planned(batch), 1)
    checkpoint.keep(snapshot(2), 1)
    for batch in range(3, 6):
        checkpoint.plan(planned(batch, beat=7), 1)
    found = again(checkpoint)
    assert same(found.read(SCHEMA)[0], snapshot(2))
    assert found.read(SCHEMA)[1] == [planned(batch, beat=7) for batch in range(3, 6)]
    assert found.look([2, 5]) == Checkpoint(
        1, planned=5, done=2, ends={at: (position(at * 10),) for at in (2, 5)}
    )
    assert sorted(file.name for file in found.path.iterdir()) == ["plans-3-1", "windows-2"]


def test_a_process_that_ends_within_a_line_has_not_planned(checkpoint: ArrowCheckpoint) -> None:
    """The batch was not begun. Another process plans it anew, behind the whole lines."""
    checkpoint.plan(planned(0), 1)
    checkpoint.plan(planned(1), 1)
    file = checkpoint.path / "plans-0-1"
    whole = file.read_bytes()
    first = whole.index(b"\n") + 1
    for end in range(first, len(whole)):
        file.write_bytes(whole[:end])
        found = again(checkpoint)
        assert found.read(SCHEMA)[1] == [planned(0)]
    found.plan(planned(1), 2)
    found.plan(planned(2), 2)
    assert again(found).read(SCHEMA)[1] == [planned(0), planned(1), planned(2)]


@pytest.mark.parametrize("left", ["plans-0-1", "windows-1", "both"])
def test_old_files_do_no_harm(checkpoint: ArrowCheckpoint, left: str) -> None:
    """A process may end before it has deleted what a state stands for."""
    checkpoint.plan(planned(0), 1)
    checkpoint.plan(planned(1), 1)
    first = (checkpoint.path / "plans-0-1").read_bytes()
    checkpoint.keep(snapshot(1), 1)
    checkpoint.plan(planned(2), 1)
    before = {file.name: file.read_bytes() for file in checkpoint.path.iterdir()}
    before["plans-0-1"] = first
    checkpoint.keep(snapshot(2), 1)
    for name in before if left == "both" else (left,):
        (checkpoint.path / name).write_bytes(before[name])
    found = again(checkpoint)
    assert same(found.read(SCHEMA)[0], snapshot(2))
    assert found.read(SCHEMA)[1] == []
    found.plan(planned(3), 2)
    assert again(found).read(SCHEMA)[1] == [planned(3)]


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("plans-0-1", b"no JSON\n"),
        ("plans-0-1", b'{"batch": 0}\n'),
        ("plans-0-1", b'{"batch": true, "offset": {}, "watermark": 0}\n'),
        ("plans-0-1", b"[" * 100_000 + b"\n"),
        ("plans-0-1", b"\xff\n"),
        ("windows-7", b"no JSON\n"),
        ("windows-7", b'{"batch": 6}\n'),
        ("windows-7", b"[]\n"),
        ("windows-7", b""),
    ],
)
def test_what_is_damaged_is_said(checkpoint: ArrowCheckpoint, file: str, content: bytes) -> None:
    """The error names the file."""
    checkpoint.path.mkdir(parents=True)
    (checkpoint.path / file).write_bytes(content)
    with pytest.raises(CheckpointDiverged, match=file):
        checkpoint.look()


def test_each_flipped_byte_of_a_state_is_found(checkpoint: ArrowCheckpoint) -> None:
    """No damaged state is gone on with."""
    checkpoint.keep(snapshot(4), 1)
    file = checkpoint.path / "windows-4"
    whole = file.read_bytes()
    for at in range(len(whole)):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(CheckpointDiverged, match="windows-4"):
            checkpoint.read(SCHEMA)[0]


def test_a_forged_state_is_refused(checkpoint: ArrowCheckpoint) -> None:
    """A text that ends behind its bytes would show other memory of the process."""
    checkpoint.keep(snapshot(4), 1)
    file = checkpoint.path / "windows-4"
    body = file.read_bytes()[:-32]
    ends = b"\x00\x00\x00\x00\x01\x00\x00\x00"
    at = body.rindex(ends)
    forged = body[:at] + b"\x00\x00\x00\x00\x00\x00\x40\x00" + body[at + len(ends) :]
    file.write_bytes(forged + hashlib.sha256(forged).digest())
    with pytest.raises(CheckpointDiverged, match="windows-4"):
        checkpoint.read(SCHEMA)[0]


@pytest.mark.parametrize("mark", [True, 1 << 54, -(1 << 62), 1e9, "1", None])
def test_a_watermark_that_is_no_time_is_refused(checkpoint: ArrowCheckpoint, mark: object) -> None:
    """In microseconds, it has to have 64 bits."""
    checkpoint.path.mkdir(parents=True)
    line = json.dumps({"batch": 0, "offset": position(0), "watermark": mark})
    (checkpoint.path / "plans-0-1").write_text(f"{line}\n")
    with pytest.raises(CheckpointDiverged, match="its watermark is no time"):
        checkpoint.read(SCHEMA)[1]


def test_the_state_of_another_query_is_refused(checkpoint: ArrowCheckpoint) -> None:
    """Its columns are others."""
    checkpoint.keep(snapshot(4), 1)
    with pytest.raises(CheckpointDiverged, match="another query"):
        checkpoint.read(pa.schema([("window", pa.int64())]))


def test_a_batch_that_is_missing_is_said(checkpoint: ArrowCheckpoint) -> None:
    """Batches are read again one after the other."""
    checkpoint.plan(planned(0), 1)
    checkpoint.plan(planned(2), 1)
    with pytest.raises(CheckpointDiverged, match="does not have all batches behind batch -1"):
        again(checkpoint).read(SCHEMA)[1]


def test_a_query_without_windows_has_a_state(checkpoint: ArrowCheckpoint) -> None:
    """It says how far the query is."""
    nothing = pa.schema([])
    checkpoint.keep(Snapshot(*planned(3), nothing.empty_table(), times()), 1)
    found = checkpoint.read(nothing)[0]
    assert found is not None
    assert (found.batch, found.watermark) == (3, 3000)


def test_no_file_stays_open(checkpoint: ArrowCheckpoint) -> None:
    """Each state closes the file of the plans before it."""
    files = Path("/proc/self/fd")
    opened = len([*files.iterdir()])
    for batch in range(50):
        checkpoint.plan(planned(batch), 1)
        checkpoint.keep(snapshot(batch), 1)
    assert len([*files.iterdir()]) == opened


def test_the_plans_of_a_process_that_was_superseded_do_not_count(
    checkpoint: ArrowCheckpoint,
) -> None:
    """It may plan on until it notices. The process that took its place has its own file."""
    checkpoint.plan(planned(0), 1)
    second = ArrowCheckpoint(checkpoint.path.parent, 1)
    assert second.read(SCHEMA)[1] == [planned(0)]
    checkpoint.plan(planned(1, beat=9), 1)
    assert second.read(SCHEMA)[1] == [planned(0), planned(1, beat=9)]
    second.plan(planned(1), 2)
    second.plan(planned(2), 2)
    assert again(second).read(SCHEMA)[1] == [planned(0), planned(1), planned(2)]


def test_a_volume_that_takes_nothing_is_said(checkpoint: ArrowCheckpoint) -> None:
    """A file is in the place of the folder."""
    checkpoint.path.parent.mkdir(exist_ok=True)
    checkpoint.path.write_text("no folder")
    with pytest.raises(InfrastructureError, match="the checkpoint cannot be written"):
        checkpoint.plan(planned(0), 1)
    with pytest.raises(InfrastructureError, match="the checkpoint cannot be written"):
        checkpoint.keep(snapshot(0), 1)


def test_what_a_killed_process_has_left_is_deleted(checkpoint: ArrowCheckpoint) -> None:
    """A state that was not whole has another name."""
    checkpoint.keep(snapshot(0), 1)
    left, new = (checkpoint.path / f".new-{attempt}" for attempt in (6, 7))
    left.write_bytes(b"half")
    new.write_bytes(b"half")
    checkpoint.tidy(7)
    assert not left.exists()
    assert new.exists()
    assert same(checkpoint.read(SCHEMA)[0], snapshot(0))


@pytest.mark.parametrize("step", ["_states", "_head", "_plans"])
def test_a_state_that_is_written_meanwhile_is_read_whole(
    checkpoint: ArrowCheckpoint, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """An attempt that was superseded may write one between any two looks of the next one."""
    checkpoint.plan(planned(0), 1)
    checkpoint.plan(planned(1), 1)
    checkpoint.keep(snapshot(1), 1)
    checkpoint.plan(planned(2), 1)
    reader = ArrowCheckpoint(checkpoint.path.parent, 1)
    look, left = getattr(ArrowCheckpoint, step), [1]

    def looking(self: ArrowCheckpoint, *files: Path) -> object:
        found = look(self, *files)
        if self is reader and left:
            left.pop()
            checkpoint.keep(snapshot(2), 1)
        return found

    monkeypatch.setattr(ArrowCheckpoint, step, looking)
    assert same(reader.read(SCHEMA)[0], snapshot(2))
    assert reader.read(SCHEMA)[1] == []
    assert reader.look() == Checkpoint(1, planned=2, done=2)


def test_windows_are_read_into_aligned_memory(checkpoint: ArrowCheckpoint) -> None:
    """Whatever the length of the first line. Arrow warns of others, or ends."""
    for batch in (5, 50, 500, 5000):
        checkpoint.keep(snapshot(batch), 1)
        found, _ = checkpoint.read(SCHEMA)
        assert found is not None
        buffers = [
            part
            for column in found.windows.columns
            for chunk in column.chunks
            for part in chunk.buffers()
            if part is not None
        ]
        assert buffers
        assert all(part.address % 8 == 0 for part in buffers)
