"""`sluice archive`: its output and its exit codes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from sluice import cli
from sluice.archive.objects.directory import DirectoryObjects
from sluice.archive.runs.archive import Archive
from sluice.commands.archives import restore_id
from sluice.core.archive.names import Format
from sluice.core.copy.planner import ArchiveChoice
from sluice.core.values.archive_layout import DATA, HEADS
from sluice.core.values.model import StoreAddress, StreamName
from support.archiving.archives import Source, take
from support.command.spelling import parsed

if TYPE_CHECKING:
    from pathlib import Path

STORES = """\
apiVersion: sluice.dev/v1alpha1
kind: StreamStore
metadata: {name: backup}
spec: {volume: {claimName: backups}}
---
apiVersion: sluice.dev/v1alpha1
kind: StreamStore
metadata: {name: local}
spec: {pravega: {controllerURI: "tcp://127.0.0.1:1"}}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with archives of two streams, of two runs and of one."""
    for name in ("SLUICE_CLUSTER_ID", "SLUICE_CREDENTIALS_DIR", "SLUICE_VOLUMES_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "250")
    root = tmp_path / "volumes" / "backups"
    for path, runs in (("team/orders", 2), ("team/users", 1)):
        source = Source()
        for _ in range(runs):
            source.write([100, 200])
            take(Archive(DirectoryObjects(root / path)), Format.SEGMENTS, source)
            source.split()
    (tmp_path / "stores.yaml").write_text(STORES)
    return root


def main(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Run the command line as the program does; return its exit code."""
    monkeypatch.setattr(sys, "argv", ["sluice", "archive", *arguments])
    try:
        cli.main()
    except SystemExit as end:
        assert isinstance(end.code, int)  # noqa: PT017 - a command that works ends without one
        return end.code
    return 0


def of_store(folder: Path) -> tuple[str, ...]:
    """Return the options by which places are those of StreamStores."""
    volumes = folder.parent
    return ("-f", str(volumes.parent / "stores.yaml"), "--volumes-dir", str(volumes))


def test_archives_are_listed_with_their_last_run(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A StreamStore's name, a path below it, and a directory lead to the same archives."""
    assert main(monkeypatch, "ls", "backup", *of_store(folder), "-o", "json") == 0
    found = parsed(capsys.readouterr().out)
    assert [(one["path"], len(one["runs"])) for one in found] == [
        ("team/orders", 2),
        ("team/users", 1),
    ]
    assert main(monkeypatch, "ls", "backup/team/users", *of_store(folder), "-o", "json") == 0
    assert parsed(capsys.readouterr().out) == found[1:]
    assert main(monkeypatch, "ls", str(folder / "team"), "-o", "json") == 0
    assert [one["path"] for one in parsed(capsys.readouterr().out)] == ["orders", "users"]
    assert main(monkeypatch, "ls", str(folder)) == 0
    assert "team/orders" in capsys.readouterr().out


def test_an_archive_that_cannot_be_read_hides_no_other(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is named, the others are listed, and the exit code shows the failure."""
    objects = DirectoryObjects(folder / "team" / "orders")
    objects.put(max(one.name for one in objects.list(HEADS)), b"no head")
    assert main(monkeypatch, "ls", str(folder), "-o", "json") == 6
    out, err = capsys.readouterr()
    assert [one["path"] for one in parsed(out)] == ["team/users"]
    assert "archive team/orders" in err


def test_a_run_is_inspected(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The output has the segments of a run, by default the last one, and all runs."""
    place = ("inspect", "backup/team/orders", *of_store(folder))
    assert main(monkeypatch, *place) == 0
    out = capsys.readouterr().out
    assert "Run 2 of shop/orders" in out
    assert "scale 1" in out
    assert "made by StreamArchive shop/orders" in out
    assert main(monkeypatch, *place, "--run", "1", "-o", "json") == 0
    body = parsed(capsys.readouterr().out)
    assert body["manifest"]["run"] == 1
    assert [one["run"] for one in body["runs"]] == [1, 2]
    assert main(monkeypatch, *place, "--until", "2000-01-01T00:00:00Z") == 2
    assert main(monkeypatch, *place, "--until", "yesterday") == 2
    assert "2026-05-04T12:00:00Z" in capsys.readouterr().err


def test_a_restore_is_known_by_all_that_it_is_between() -> None:
    """Another run, path, address or endpoint is another restore. Secret and region do not count."""
    bucket = StoreAddress(backend="s3", uri="s3://backups", endpoint="https://one:9000")
    choice = ArchiveChoice(path="team/orders")
    stream = StreamName(scope="shop", stream="restored")

    def known(place: StoreAddress = bucket, **changes: object) -> str:
        chosen = choice.model_copy(update=changes)
        target = StoreAddress(uri="tcp://127.0.0.1:9090"), stream
        return restore_id("", (place, chosen), target, append=False)

    others = [
        known(bucket.model_copy(update={"endpoint": "https://two:9000"})),
        known(bucket.model_copy(update={"endpoint": None})),
        known(bucket.model_copy(update={"uri": "s3://others"})),
        known(run=1),
        known(path="team/users"),
    ]
    assert len({known(), *others}) == 1 + len(others)
    assert known(bucket.model_copy(update={"secret": "keys", "region": "eu-north-1"})) == known()


def test_damage_is_named_and_is_exit_code_6(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An archive is as it was recorded, or the error names the damage."""
    place = ("verify", "backup/team/orders", *of_store(folder))
    assert main(monkeypatch, *place) == 0
    assert "is as it was recorded" in capsys.readouterr().out
    assert main(monkeypatch, *place, "-o", "json") == 0
    head = parsed(capsys.readouterr().out)["headSha256"]
    assert main(monkeypatch, *place, "--head", head) == 0
    assert main(monkeypatch, *place, "--head", "0" * 64) == 6
    assert head in capsys.readouterr().err
    objects = DirectoryObjects(folder / "team" / "orders")
    victim = next(objects.list(DATA)).name
    objects.delete([victim])
    assert main(monkeypatch, *place) == 6
    assert f"{victim} is missing" in capsys.readouterr().err
    assert main(monkeypatch, *place, "-o", "json") == 6
    body = parsed(capsys.readouterr().out)
    assert [one["name"] for one in body["problems"]] == [victim]
    assert body["damagedRuns"] == [1, 2]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["inspect", "backup/none"], "no archive"),
        (["verify", "other/team"], "StreamStores 'other'"),
        (["ls", "local"], "no archives"),
        (["restore", "backup/team/orders", "nowhere"], "no stream"),
        (["restore", "backup/team/orders", "local:a/_RGb"], "those with _ are its own"),
        (["restore", "backup/team/orders", "backup:a/b"], "no store of live streams"),
        (["inspect", "backup/../x"], "no path of an archive"),
    ],
)
def test_wrong_places_are_exit_code_2(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    said: str,
) -> None:
    """The error names the fault, and nothing is made."""
    assert main(monkeypatch, *arguments, *of_store(folder)) == 2
    assert said in capsys.readouterr().err
