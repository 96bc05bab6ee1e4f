"""`sluice archive`, and restores by `sluice run`, as users run them."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from sluice.core.archive.names import Format
from sluice.core.values.archive_layout import DATA, LEASES
from sluice.stores.pravega.groups import cuts
from support.command import warm
from support.command.restores import SPLIT, Env
from support.command.sluice_command import Finished, finish
from support.until import until

if TYPE_CHECKING:
    from s3gateway import Gateway
    from sluice.archive.objects.objects import Objects

# The first test that needs the gateway compiles it.
pytestmark = pytest.mark.timeout(1200)


def sluice(env: Env, *arguments: str) -> Finished:
    """Run a command of `sluice archive`."""
    process = warm.Popen(
        [warm.SLUICE, "archive", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **env.restore.environment, "COLUMNS": "200"},
    )
    return finish(process)


def archived(env: Env, form: Format = Format.SEGMENTS) -> Objects:
    """Record two runs of a stream, and return the archive's objects."""
    env.make()
    env.write(3000)
    env.take(form)
    env.scale(*SPLIT)
    env.write(3000)
    env.take(form)
    return env.archive.objects


@pytest.mark.exhaustive
@pytest.mark.parametrize("env", ["volume", "bucket"], indirect=True)
def test_archives_are_listed_inspected_verified_and_restored(env: Env) -> None:
    """The commands work on archives in a directory and in a bucket, by the StreamStore's name."""
    objects = archived(env)
    file = ("-f", str(env.restore.file))
    listed = sluice(env, "ls", "backup", *file, "-o", "json")
    assert listed.code == 0, listed.err
    ((found,), head) = listed.json, env.archive.head()
    assert head is not None
    assert found["path"] == env.restore.path
    assert [one["run"] for one in found["runs"]] == [1, 2]

    place = f"backup/{env.restore.path}"
    inspected = sluice(env, "inspect", place, *file)
    assert inspected.code == 0, inspected.err
    assert head.runs[0].sha256 in inspected.out
    assert "6,000" in inspected.out

    verified = sluice(env, "verify", place, *file, "-o", "json")
    assert verified.code == 0, verified.err
    assert verified.json["problems"] == []

    target = f"local:{env.source[0]}/by-command"
    restored = sluice(env, "restore", place, target, *file, "-o", "json")
    assert restored.code == 0, restored.err
    assert restored.json["events"] == 6000
    read = env.foreign.read(env.source[0], "by-command")
    assert (read.events, read.digest) == (6000, env.foreign.read(*env.source).digest)
    again = sluice(env, "restore", place, target, *file)
    assert (again.code, "already" in again.err) == (0, True)
    elsewhere = f"local:{env.source[0]}-new/by-command"
    assert "TargetScopeNotFound" in sluice(env, "restore", place, elsewhere, *file).err
    made = sluice(env, "restore", place, elsewhere, *file, "--create-scope")
    assert made.code == 0, made.err
    assert list(objects.list(LEASES)) == []

    victim = next(objects.list(DATA)).name
    objects.delete([victim])
    refused = sluice(env, "restore", place, f"{target}-2", *file)
    assert refused.code == 6
    assert victim in refused.err


@pytest.mark.exhaustive
def test_a_directory_is_a_place_by_itself(volume_env: Env) -> None:
    """An archive in a directory can be inspected and restored without a StreamStore."""
    env = volume_env
    archived(env)
    root = env.restore.folder / "volumes" / "backups" / "streams"
    listed = sluice(env, "ls", str(root), "-o", "json")
    assert [one["path"] for one in listed.json] == [env.restore.path]
    place = str(root / env.restore.path)
    assert sluice(env, "verify", place).code == 0
    assert "6,000" in sluice(env, "inspect", place).out
    file = ("-f", str(env.restore.file))
    restored = sluice(env, "restore", place, f"local:{env.source[0]}/it", *file, "--run", "1")
    assert restored.code == 0, restored.err
    assert env.foreign.read(env.source[0], "it").events == 3000


@pytest.mark.exhaustive
def test_a_restore_that_is_killed_goes_on(bucket_env: Env) -> None:
    """After SIGKILL during the transfer, the same command finishes and releases the lease."""
    env = bucket_env
    env.make()
    env.write(100_000)
    env.take(Format.SEGMENTS)
    objects = env.archive.objects
    env.restore.limits = {"bytesPerSecond": "1Mi"}
    process = env.restore.start()
    until("bytes move", lambda: env.staged or process.poll() is not None)
    assert process.poll() is None  # the restore takes ten seconds
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert list(objects.list(LEASES))
    assert env.foreign.read(*env.restore.target).events == 0
    env.restore.limits = {}
    finished = env.restore.run("run", "-o", "json")
    assert finished.code == 0, finished.err
    assert finished.json[0]["outcome"] == "Copied", finished.json
    read = env.foreign.read(*env.restore.target)
    assert (read.events, read.digest) == (env.events, env.foreign.read(*env.source).digest)
    assert list(objects.list(LEASES)) == []
    verified = env.restore.run("verify")
    assert verified.code == 0, verified.err
    tail = env.foreign.info(*env.source).tail
    translated = env.restore.run("position", "--cut", tail)
    assert translated.code == 0, translated.err
    found = cuts.read(translated.out.strip())
    assert found == cuts.read(env.foreign.info(*env.restore.target).tail)
    objects.delete([one.name for one in objects.list()])
    assert env.restore.run("position", "--cut", tail).out == translated.out


@pytest.mark.exhaustive
def test_a_restore_waits_for_a_gateway_that_is_killed(bucket_env: Env, gateway: Gateway) -> None:
    """A restore retries while the archive's gateway is down, and then goes on."""
    env = bucket_env
    env.make()
    for _ in range(5):
        env.write(10_000)
    env.take(Format.SEGMENTS)
    env.restore.limits = {"bytesPerSecond": "1Mi"}
    with env.restore.running("run", "-o", "json") as process:
        _wait_for_lease(env, process)
        gateway.kill()
        try:
            time.sleep(5)
        finally:
            gateway.start()
        finished = finish(process)
    assert finished.code == 0, finished.err
    assert env.foreign.read(*env.restore.target).events == env.events
    assert list(env.archive.objects.list(LEASES)) == []


def _wait_for_lease(env: Env, process: subprocess.Popen[str]) -> None:
    """Wait until a driver reads the archive."""
    objects = env.archive.objects
    until("a driver reads", lambda: any(objects.list(LEASES)) or process.poll() is not None)
    assert process.poll() is None
