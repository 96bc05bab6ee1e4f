"""`sluice run` with a StreamArchive: a process that is killed, and goes on."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from sluice.archive.objects.directory import DirectoryObjects
from sluice.archive.runs.archive import Archive
from sluice.core.archive.names import Format
from sluice.core.values.archive_layout import DATA
from sluice.core.values.model import StoreAddress, StreamName
from sluice.pipelines.programs.stores import Stores
from support.archiving.archive_runs import held_by, last_run
from support.command.archive_files import ArchiveFile, call
from support.store.inline import SETTINGS
from support.until import TIGHT, until

if TYPE_CHECKING:
    from pathlib import Path

    from localstore import ForeignClient, Standalone
    from sluice.core.archive.head import RunEntry

EVENTS = 6000


@pytest.fixture
def file(tmp_path: Path, standalone: Standalone, foreign: ForeignClient, scope: str) -> ArchiveFile:
    """Return the file with an archive of a stream of four segments."""
    found = ArchiveFile(tmp_path, standalone.controller_uri, (scope, "source"))
    foreign.create(*found.source, segments=4)
    foreign.write(*found.source, events=EVENTS, keys=64)
    return found


def assert_whole(file: ArchiveFile, standalone: Standalone, run: int) -> None:
    """Check that the archive is intact and holds the bytes of the stream."""
    objects = DirectoryObjects(file.place)
    manifest = last_run(objects)
    assert manifest.run == run
    held = held_by(objects, manifest)
    name = StreamName(scope=file.source[0], stream=file.source[1])
    with Stores(SETTINGS) as stores:
        store = stores[StoreAddress(uri=standalone.controller_uri)]
        for segment in manifest.segments:
            full = store.segment_name(name, segment.id)
            (info,) = store.infos([full])
            assert info is not None
            data = b"".join(bytes(one.data) for one in store.read(full, info.start, info.length))
            assert held[segment.id] == data
    assert not [one.name for one in objects.list() if one.name.startswith(("work/", "leases/"))]


def test_each_run_of_the_command_adds_what_is_new(
    file: ArchiveFile, standalone: Standalone, foreign: ForeignClient
) -> None:
    """Each run adds the new events. `plan` shows the run in advance and makes nothing."""
    planned = file.run("plan", "--output", "json").json[0]
    assert (planned["kind"], planned["recorded"]) == ("StreamArchive", False)
    assert planned["plan"]["archive"]["run"] == 1
    assert not file.place.exists()
    ended = file.run("run", "--output", "json")
    assert ended.code == 0, ended.err
    assert (ended.json[0]["outcome"], ended.json[0]["events"]) == ("Archived", EVENTS)
    assert_whole(file, standalone, 1)
    foreign.write(*file.source, events=100, keys=64, first=EVENTS)
    ended = file.run("run", "--output", "json")
    assert (ended.json[0]["run"], ended.json[0]["events"]) == (2, EVENTS + 100)
    assert_whole(file, standalone, 2)
    assert file.run("abort").code == 0


@pytest.mark.exhaustive
@pytest.mark.parametrize("form", list(Format))
def test_a_command_that_is_killed_goes_on(
    file: ArchiveFile, standalone: Standalone, form: Format
) -> None:
    """A command killed at any time goes on, and the archive is the same as without the kill."""
    file.spec = {"format": form.value, "limits": {"bytesPerSecond": "400Ki"}}
    chance = random.Random(form.value)  # noqa: S311 - no secrets
    most = 300 if form is Format.EVENT_OBJECTS else 3
    for _ in range(3):
        enough = _written(file) + chance.randint(1, most)
        with file.running("run") as process:
            until(
                f"{enough} objects are there",
                lambda enough=enough: _written(file) >= enough or process.poll() is not None,
                poll=TIGHT,
            )
            process.kill()
    file.spec = {"format": form.value}
    ended = file.run("run", "--output", "json")
    assert ended.code == 0, ended.err
    assert ended.json[0]["events"] == EVENTS
    assert_whole(file, standalone, ended.json[0]["run"])


def _written(file: ArchiveFile) -> int:
    return sum(path.is_file() for path in file.place.rglob("*"))


@pytest.mark.exhaustive
def test_old_runs_are_let_go_by_the_command_and_by_each_run(
    file: ArchiveFile, standalone: Standalone
) -> None:
    """A dry run only lists old runs. The spec's retention applies once another run is recorded."""
    for _ in range(3):
        assert file.run("run").code == 0
    place = str(file.place)
    told = call("archive", "retain", place, "--keep-last", "1", "--dry-run", "-o", "json")
    assert (told.json["letGo"], told.json["objects"]) == ([1, 2], 0)
    assert [one.run for one in _runs(file)] == [1, 2, 3]
    done = call("archive", "retain", place, "--keep-within", "1h", "-o", "json")
    assert done.json["letGo"] == []
    file.spec = {"retention": {"keepLast": 2}}
    assert file.run("run").code == 0
    assert [one.run for one in _runs(file)] == [3, 4]
    assert_whole(file, standalone, 4)


def _runs(file: ArchiveFile) -> tuple[RunEntry, ...]:
    head = Archive(DirectoryObjects(file.place)).head()
    assert head is not None
    return head.runs


@pytest.mark.exhaustive
@pytest.mark.parametrize("form", [Format.SEGMENTS, Format.PARQUET])
def test_long_runs_are_made_by_tasks(
    file: ArchiveFile, standalone: Standalone, foreign: ForeignClient, form: Format
) -> None:
    """Tasks archive segments side by side. A run that is killed with its tasks is continued.

    Three routing keys leave a segment with few bytes. Its object is there within a second, and the
    others take forty.
    """
    foreign.write(*file.source, events=40_000, size=1000, keys=3, first=EVENTS)
    file.spec = {"format": form.value, "limits": {"bytesPerSecond": "1Mi"}}
    with file.running("run") as process:
        until(
            "an object is there",
            lambda: any((file.place / DATA).rglob("*")) or process.poll() is not None,
            poll=TIGHT,
        )
        assert process.poll() is None
        process.kill()
    assert Archive(DirectoryObjects(file.place)).head() is None
    file.spec = {"format": form.value}
    ended = file.run("run", "--output", "json")
    assert ended.code == 0, ended.err
    assert (ended.json[0]["run"], ended.json[0]["events"]) == (1, EVENTS + 40_000)
    assert_whole(file, standalone, 1)
