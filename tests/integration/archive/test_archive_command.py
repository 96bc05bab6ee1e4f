"""`sluice archive`, and restores by `sluice run`, as people use them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sluice.core.archive.names import DATA, LEASES, Format
from sluice.stores.pravega import cuts
from support.command import Finished, finish
from support.restores import SPLIT, Lab

if TYPE_CHECKING:
    from s3gateway import Gateway
    from sluice.archive.objects import Objects

# The first one to need the gateway compiles it.
pytestmark = pytest.mark.timeout(1200)


def sluice(lab: Lab, *arguments: str) -> Finished:
    """Run a command of `sluice archive`."""
    process = subprocess.Popen(
        [Path(sys.executable).with_name("sluice"), "archive", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **lab.restore.environment, "COLUMNS": "200"},
    )
    return finish(process)


def archived(lab: Lab, form: Format = Format.SEGMENTS) -> Objects:
    """Two runs of a stream; the archive's objects."""
    lab.make()
    lab.write(3000)
    lab.take(form)
    lab.scale(*SPLIT)
    lab.write(3000)
    lab.take(form)
    return lab.archive.objects


@pytest.mark.parametrize(
    "lab",
    [pytest.param("volume", marks=pytest.mark.exhaustive), "bucket"],
    indirect=True,
)
def test_archives_are_listed_inspected_verified_and_restored(lab: Lab) -> None:
    """In a directory and in a bucket, by the StreamStore's name."""
    objects = archived(lab)
    file = ("-f", str(lab.restore.file))
    listed = sluice(lab, "ls", "backup", *file, "-o", "json")
    assert listed.code == 0, listed.err
    ((found,), head) = listed.json, lab.archive.head()
    assert head is not None
    assert found["path"] == lab.restore.path
    assert [one["run"] for one in found["runs"]] == [1, 2]

    place = f"backup/{lab.restore.path}"
    inspected = sluice(lab, "inspect", place, *file)
    assert inspected.code == 0, inspected.err
    assert head.runs[0].sha256 in inspected.out
    assert "6,000" in inspected.out

    verified = sluice(lab, "verify", place, *file, "-o", "json")
    assert verified.code == 0, verified.err
    assert verified.json["problems"] == []

    target = f"local:{lab.source[0]}/by-command"
    restored = sluice(lab, "restore", place, target, *file, "-o", "json")
    assert restored.code == 0, restored.err
    assert restored.json["events"] == 6000
    read = lab.foreign.read(lab.source[0], "by-command")
    assert (read.events, read.digest) == (6000, lab.foreign.read(*lab.source).digest)
    again = sluice(lab, "restore", place, target, *file)
    assert (again.code, "already" in again.err) == (0, True)
    assert list(objects.list(LEASES)) == []

    victim = next(objects.list(DATA)).name
    objects.delete([victim])
    refused = sluice(lab, "restore", place, f"{target}-2", *file)
    assert refused.code == 6
    assert victim in refused.err


def test_a_directory_is_a_place_by_itself(volume_lab: Lab) -> None:
    """Whoever has an archive in a directory needs no StreamStore to look at it or restore it."""
    lab = volume_lab
    archived(lab)
    root = lab.restore.folder / "volumes" / "backups" / "streams"
    listed = sluice(lab, "ls", str(root), "-o", "json")
    assert [one["path"] for one in listed.json] == [lab.restore.path]
    place = str(root / lab.restore.path)
    assert sluice(lab, "verify", place).code == 0
    assert "6,000" in sluice(lab, "inspect", place).out
    file = ("-f", str(lab.restore.file))
    restored = sluice(lab, "restore", place, f"local:{lab.source[0]}/it", *file, "--run", "1")
    assert restored.code == 0, restored.err
    assert lab.foreign.read(lab.source[0], "it").events == 3000


def test_a_restore_that_is_killed_goes_on(bucket_lab: Lab) -> None:
    """SIGKILL while bytes move: the same command finishes, and gives the lease back."""
    lab = bucket_lab
    lab.make()
    for _ in range(20):
        lab.write(10_000)
    lab.take(Format.SEGMENTS)
    objects = lab.archive.objects
    lab.restore.limits = {"bytesPerSecond": "1Mi"}
    process = lab.restore.start()
    _wait_for_lease(lab, process)
    time.sleep(3)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert list(objects.list(LEASES))
    assert lab.foreign.read(*lab.restore.target).events == 0
    lab.restore.limits = {}
    finished = lab.restore.run("run", "-o", "json")
    assert finished.code == 0, finished.err
    assert finished.json[0]["outcome"] == "Copied", finished.json
    read = lab.foreign.read(*lab.restore.target)
    assert (read.events, read.digest) == (lab.events, lab.foreign.read(*lab.source).digest)
    assert list(objects.list(LEASES)) == []
    verified = lab.restore.run("verify")
    assert verified.code == 0, verified.err
    tail = lab.foreign.info(*lab.source).tail
    translated = lab.restore.run("position", "--cut", tail)
    assert translated.code == 0, translated.err
    found = cuts.read(translated.out.strip())
    assert found == cuts.read(lab.foreign.info(*lab.restore.target).tail)
    objects.delete([one.name for one in objects.list()])
    assert lab.restore.run("position", "--cut", tail).out == translated.out


@pytest.mark.exhaustive
def test_a_restore_waits_for_a_gateway_that_is_killed(bucket_lab: Lab, gateway: Gateway) -> None:
    """While the store of archives is away it is tried again, and then the restore goes on."""
    lab = bucket_lab
    lab.make()
    for _ in range(5):
        lab.write(10_000)
    lab.take(Format.SEGMENTS)
    lab.restore.limits = {"bytesPerSecond": "1Mi"}
    with lab.restore.running("run", "-o", "json") as process:
        _wait_for_lease(lab, process)
        gateway.kill()
        try:
            time.sleep(5)
        finally:
            gateway.start()
        finished = finish(process)
    assert finished.code == 0, finished.err
    assert lab.foreign.read(*lab.restore.target).events == lab.events
    assert list(lab.archive.objects.list(LEASES)) == []


def _wait_for_lease(lab: Lab, process: subprocess.Popen[str]) -> None:
    """Wait until a driver reads the archive."""
    patience = time.monotonic() + 60
    while not list(lab.archive.objects.list(LEASES)):
        assert process.poll() is None
        assert time.monotonic() < patience
        time.sleep(0.1)
