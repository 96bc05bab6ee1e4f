import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sluice.archive.objects import directory
from sluice.archive.objects.directory import DirectoryObjects
from sluice.errors import PermissionDenied, StoreRejected, StoreUnavailable

WRITER = """
import sys
from pathlib import Path
from sluice.archive.objects.directory import DirectoryObjects

objects = DirectoryObjects(Path(sys.argv[1]))
for number in range(10**9):
    objects.put(f"data/{number % 50:04x}", bytes([number % 256]) * (1 << 20))
    print(number, flush=True)
"""


@pytest.fixture
def objects(tmp_path: Path) -> DirectoryObjects:
    """Return a directory that does not exist yet."""
    return DirectoryObjects(tmp_path / "a" / "b")


def test_a_killed_writer_leaves_whole_objects(tmp_path: Path) -> None:
    """A named object is whole. Unfinished files are listed, so they can be swept."""
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    objects = DirectoryObjects(tmp_path)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        for _ in range(30):
            assert writer.stdout.readline()
        writer.send_signal(signal.SIGKILL)
    names = [one.name for one in objects.list("data/")]
    assert len(names) >= 30
    for name in names:
        data = objects.get(name)
        assert data is not None
        assert data == data[:1] * (1 << 20)
    left = [one.name for one in objects.list(".partial/")]
    assert len(left) <= 1
    objects.delete(left)
    assert [one.name for one in objects.list()] == names


@pytest.mark.parametrize(
    ("number", "error"),
    [
        (errno.ENOSPC, StoreRejected),
        (errno.EDQUOT, StoreRejected),
        (errno.EROFS, PermissionDenied),
        (errno.EIO, StoreUnavailable),
    ],
)
def test_what_the_file_system_says_is_told(
    objects: DirectoryObjects, monkeypatch: pytest.MonkeyPatch, number: int, error: type[Exception]
) -> None:
    """A full disk needs room, a read-only one rights; other errors may pass. Nothing is left."""

    def fails(_handle: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(error, match=os.strerror(number)):
        objects.put("data/it", b"x")
    monkeypatch.undo()
    assert list(objects.list()) == []


def test_a_file_system_without_links_is_told(
    objects: DirectoryObjects, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An archive needs conditional creation, which needs links."""

    def fails(*_arguments: object) -> None:
        raise OSError(errno.EOPNOTSUPP, "not supported")

    monkeypatch.setattr(Path, "hardlink_to", fails)
    with pytest.raises(StoreRejected) as caught:
        objects.put_new("heads/1", b"x")
    assert "hard links" in caught.value.remedy


def test_a_folder_that_is_swept_is_made_again(tmp_path: Path) -> None:
    """A deletion of the last object of a folder does not block a writer there."""
    one, other = DirectoryObjects(tmp_path), DirectoryObjects(tmp_path)
    for number in range(20):
        one.put("data/00/it", b"%d" % number)
        other.delete(["data/00/it"])
        assert not (tmp_path / "data").exists()
    assert one.put_new("data/00/it", b"last")
    assert other.get("data/00/it") == b"last"


def test_what_a_killed_writer_has_named_lasts_once_it_is_found(
    objects: DirectoryObjects, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that relies on another's object or folder syncs its name first."""
    (tmp_path / "a" / "b" / "heads").mkdir(parents=True)
    (tmp_path / "a" / "b" / "heads" / "1").write_bytes(b"x")
    synced: list[Path] = []
    sync = directory._sync_folder
    monkeypatch.setattr(directory, "_sync_folder", lambda one: (synced.append(one), sync(one)))
    assert not objects.put_new("heads/1", b"x")
    assert {tmp_path / "a" / "b", tmp_path / "a" / "b" / "heads"} <= set(synced)
    objects.put("data/it", b"x")
    assert tmp_path / "a" / "b" / "data" in synced


def test_what_lies_under_a_name_is_replaced_by_what_is_synced(
    objects: DirectoryObjects, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This holds for many objects as well: a run may list them while its task is repeated."""
    done: list[str] = []
    replace = Path.replace
    monkeypatch.setattr(directory, "_sync_file_system", lambda _: done.append("sync"))
    monkeypatch.setattr(Path, "replace", lambda one, to: (done.append(to.name), replace(one, to)))
    objects.put_many([("events/1", b"one"), ("events/2", b"two")])
    assert done == ["sync", "1", "2", "sync"]
    assert [one.name for one in DirectoryObjects(tmp_path / "a" / "b").list()] == [
        "events/1",
        "events/2",
    ]


def test_a_folder_above_that_nobody_may_read_is_no_hindrance(
    objects: DirectoryObjects, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sluice did not make the content of that folder."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    sync = directory._sync_folder

    def denied(folder: Path) -> None:
        if folder == tmp_path / "a":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        sync(folder)

    monkeypatch.setattr(directory, "_sync_folder", denied)
    objects.put("data/it", b"x")
    assert objects.get("data/it") == b"x"


def test_times_are_those_of_the_file_system(objects: DirectoryObjects) -> None:
    """The time of an object is in milliseconds."""
    objects.put("leases/it", b"x")
    found = objects.look("leases/it")
    assert found is not None
    assert abs(found.modified - time.time() * 1000) < 60_000
