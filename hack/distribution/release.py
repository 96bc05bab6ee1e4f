"""All files of a release, in one folder. The same commit gives the same bytes."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from packaging.utils import parse_sdist_filename

import genmanifests
import pageparts
from distribution import chart
from distribution.errors import DistributionError
from distribution.notes import notes_of
from distribution.sbom import bill

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).resolve().parents[2]
SUMS: Final = "SHA256SUMS"
_SECONDS: Final = 300


def build(into: Path) -> list[Path]:
    """Make all files of a release, and return them.

    The folder appears only when it is complete, and replaces an older one.

    Raises:
        DistributionError: something is missing, or the folder has other files.
    """
    if into.exists() and any(into.iterdir()) and not (into / SUMS).exists():
        raise DistributionError(f"{into} has files of other programs: name another folder")
    epoch = commit_time()
    into.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{into.name}-", dir=into.parent) as folder:
        made = Path(folder, "made")
        made.mkdir()
        _make(made, epoch)
        if into.exists():
            shutil.rmtree(into)
        made.rename(into)
    return list(files(into))


def files(folder: Path) -> Iterator[Path]:
    """Yield all files below a folder, sorted."""
    yield from sorted(path for path in folder.rglob("*") if path.is_file())


def commit_time() -> int:
    """Return SOURCE_DATE_EPOCH if it is set, else the commit's time, in seconds since 1970.

    `git archive` gives all files the commit's time. So without git, a file's time is used.
    """
    if given := os.environ.get("SOURCE_DATE_EPOCH"):
        if not given.isdecimal():
            raise DistributionError(f"SOURCE_DATE_EPOCH is {given!r}: write seconds since 1970")
        return int(given)
    if (ROOT / ".git").exists():
        told = subprocess.run(
            ["git", "log", "-1", "--format=%ct"],
            check=True,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
        )
        return int(told.stdout)
    return int((ROOT / "pyproject.toml").stat().st_mtime)


def _make(into: Path, epoch: int) -> None:
    """Make the files in an empty folder."""
    sdist = _packages(into, epoch)
    _, version = parse_sdist_filename(sdist.name)
    (into / "RELEASE-NOTES.md").write_text(
        notes_of(ROOT / "CHANGELOG.md", str(version)), encoding="utf-8"
    )
    package = chart.package(genmanifests.CHART, into, version, epoch)
    chart.artefact(package, into / "chart-oci", epoch)
    for path, text in genmanifests.manifests(package).items():
        (into / path.name).write_text(text, encoding="utf-8")
    name = f"sluice-{version}.cdx.json"
    (into / name).write_text(bill(ROOT, str(version), epoch), encoding="utf-8")
    sums = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(into)}\n"
        for path in files(into)
    ]
    (into / SUMS).write_text("".join(sums), encoding="utf-8")


def _packages(into: Path, epoch: int) -> Path:
    """Build sdist and wheel, and return the sdist.

    Hatchling runs in this environment, so the lock decides its version.
    """
    try:
        pageparts.place()
    except pageparts.PagePartsError as error:
        raise DistributionError(str(error)) from error
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(into)]
    done = subprocess.run(
        command,
        check=False,
        cwd=ROOT,
        env=os.environ | {"SOURCE_DATE_EPOCH": str(epoch)},
        capture_output=True,
        text=True,
        timeout=_SECONDS,
    )
    if done.returncode:
        raise DistributionError(f"hatchling cannot build the packages:\n{done.stderr}")
    (sdist,) = into.glob("*.tar.gz")
    return sdist
