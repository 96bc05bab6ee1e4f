"""`sluice archive retain` beside the records of a scope's runs."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from sluice import cli
from sluice.archive.objects.directory import DirectoryObjects
from sluice.archive.runs.archive import Archive
from sluice.core.archive.documents import encode
from sluice.core.archive.manifest import Maker
from sluice.core.archive.names import Format
from sluice.core.scope.runs import ScopeRun, ScopeRunStream, scope_run_name
from sluice.engine.scope import recorded_runs
from sluice.errors import PermissionDenied
from support.archiving.archives import Source, take
from support.command.spelling import parsed

if TYPE_CHECKING:
    from pathlib import Path

NIGHTLY, WEEKLY = "5e" * 16, "6f" * 16
LAST = ("--keep-last", "1")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with the archive of a stream, `orders`, which has four runs."""
    for name in ("SLUICE_CLUSTER_ID", "SLUICE_CREDENTIALS_DIR", "SLUICE_VOLUMES_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "250")
    folder = tmp_path / "volumes" / "backups" / "shop"
    source = Source()
    for _ in range(4):
        source.write([100, 200])
        take(Archive(DirectoryObjects(folder / "orders")), Format.SEGMENTS, source)
        source.split()
    (tmp_path / "stores.yaml").write_text(
        "apiVersion: sluice.dev/v1alpha1\n"
        "kind: StreamStore\n"
        "metadata: {name: backup}\n"
        "spec: {volume: {claimName: backups}}\n"
    )
    return folder


def runs(folder: Path) -> list[int]:
    """Return the runs that the archive has."""
    head = Archive(DirectoryObjects(folder / "orders")).head()
    assert head is not None
    return [one.run for one in head.runs]


def note(
    folder: Path, number: int, run: int, *, series: str = NIGHTLY, failed: tuple[str, ...] = ()
) -> None:
    """Record a run of the scope that names a run of the archive."""
    head = Archive(DirectoryObjects(folder / "orders")).head()
    assert head is not None
    (entry,) = (one for one in head.runs if one.run == run)
    record = ScopeRun(
        number=number,
        work="7a" * 16,
        maker=Maker(id=series, name="ScopeCopy team/shop"),
        begin=number,
        end=number,
        streams=(ScopeRunStream(stream="orders", sha256=entry.sha256),),
        failed=failed,
    )
    DirectoryObjects(folder).put(scope_run_name(number), encode(record))


def retain(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Run the command as the program does; return its exit code."""
    monkeypatch.setattr(sys, "argv", ["sluice", "archive", "retain", *arguments])
    try:
        cli.main()
    except SystemExit as end:
        assert isinstance(end.code, int)  # noqa: PT017 - a command that works ends without one
        return end.code
    return 0


@pytest.mark.parametrize("form", ["store", "directory", "relative", "link"])
def test_a_run_that_the_last_complete_run_of_a_scope_names_stays(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    form: str,
) -> None:
    """This holds for any form of the place. The command says so; --no-scope removes the run."""
    note(folder, 1, 2)
    volumes = folder.parent.parent
    (volumes / "linked").symlink_to(folder / "orders")
    place: tuple[str, ...] = {
        "store": (
            "backup/shop/orders",
            "-f",
            str(volumes.parent / "stores.yaml"),
            "--volumes-dir",
            str(volumes),
        ),
        "directory": (str(folder / "orders"),),
        "relative": (os.path.join(os.path.relpath(folder), "other", "..", "orders"),),  # noqa: PTH118 - a Path has no `..` in its middle
        "link": (str(volumes / "linked"),),
    }[form]
    (folder / "other").mkdir()
    assert retain(monkeypatch, *place, *LAST, "--dry-run") == 0
    told = capsys.readouterr().err
    assert "Runs would be let go: 1, 3" in told
    assert "Runs kept, since the last complete run of a scope names them: 2" in told
    assert retain(monkeypatch, *place, *LAST, "-o", "json") == 0
    said = parsed(capsys.readouterr().out)
    assert (said["letGo"], said["keptForScope"], runs(folder)) == ([1, 3], [2], [2, 4])
    assert retain(monkeypatch, *place, *LAST, "--no-scope") == 0
    assert runs(folder) == [4]


def test_each_resource_of_a_folder_keeps_its_last_complete_run(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This holds behind runs with failures, many runs of another one, and foreign objects."""
    note(folder, 1, 1, series=WEEKLY)
    note(folder, 2, 2)
    note(folder, 3, 3, failed=("users",))
    for number in range(4, 80):
        note(folder, number, 3 if number < 79 else 4)
    note(folder, 80, 3, series=WEEKLY, failed=("users",))
    DirectoryObjects(folder).put(scope_run_name(81), b"something else")
    assert retain(monkeypatch, str(folder / "orders"), *LAST) == 0
    assert runs(folder) == [1, 4]


def test_without_a_rule_no_record_is_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All runs are kept then, and old objects are swept as before."""
    note(folder, 1, 1)
    monkeypatch.setattr(recorded_runs, "MOST_RECORDS", 0)
    assert retain(monkeypatch, str(folder / "orders")) == 0
    assert runs(folder) == [1, 2, 3, 4]


def test_records_that_cannot_be_read_let_nothing_go(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Records of a later version, too many, or without the right: each error has its remedy."""
    place = str(folder / "orders")
    note(folder, 1, 1)
    name = scope_run_name(1)
    written = DirectoryObjects(folder).get(name)
    assert written is not None
    later = written.replace(b'"version":"1.', b'"version":"9.')
    assert later != written
    DirectoryObjects(folder).put(name, later)
    assert retain(monkeypatch, place, *LAST) == 2
    assert "the version of Sluice that wrote" in capsys.readouterr().err
    DirectoryObjects(folder).put(name, written)
    with monkeypatch.context() as patch:
        patch.setattr(recorded_runs, "MOST_RECORDS", 0)
        assert retain(monkeypatch, place, *LAST) == 2
    assert "has 1 records" in capsys.readouterr().err

    def refuse(*_: object) -> list[int]:
        raise PermissionDenied("no right to list")

    with monkeypatch.context() as patch:
        patch.setattr(recorded_runs.RunRecords, "numbers", refuse)
        assert retain(monkeypatch, place, *LAST) == 3
    assert "give --no-scope" in capsys.readouterr().err
    assert runs(folder) == [1, 2, 3, 4]
