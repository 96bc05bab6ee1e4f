"""Cases beside the crash table: drivers that meet, an abort under a driver, a bookie that dies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.command.sluice_command import finish
from support.crash.crash_env import SCOPE, SOURCE
from support.crash.crash_points import MIDWAY
from support.crash.crash_scenes import BookieScene
from support.witness import foreign_witness as witness

if TYPE_CHECKING:
    from pathlib import Path

    from support.crash.crash_env import CrashEnv

pytestmark = [pytest.mark.crash, pytest.mark.cluster]

SECONDS = 60.0


@pytest.mark.exhaustive
def test_two_drivers_of_one_plan_copy_it_once(env: CrashEnv, tmp_path: Path) -> None:
    """Two drivers of one copy both succeed, and a reader gets each event once."""
    target = "two-drivers"
    copy = env.copy(tmp_path, target)
    with copy.running("run", "-o", "json") as one, copy.running("run", "-o", "json") as other:
        for finished in (finish(one), finish(other)):
            assert finished.code == 0, finished.err
            assert finished.json[0]["outcome"] in {"Copied", "AlreadyComplete"}
    env.assert_copied(target)
    read = env.foreign.read(*SOURCE)
    witness.assert_readable(env.foreign, (SCOPE, target), events=read.events, digest=read.digest)
    third = copy.run("run", "-o", "json")
    assert (third.code, third.json[0]["outcome"]) == (0, "AlreadyComplete")


@pytest.mark.exhaustive
def test_an_aborted_copy_leaves_nothing_and_can_be_run_again(env: CrashEnv, tmp_path: Path) -> None:
    """An abort of a running copy ends its driver and deletes all of it. A new run starts anew."""
    target = "aborted"
    copy = env.copy(tmp_path, target)
    hold = env.hold_up(MIDWAY, target)
    with copy.running("run", "-o", "json") as driver:
        assert hold.reached.wait(SECONDS)
        aborted = copy.run("abort")
        assert aborted.code == 0, aborted.err
        hold.release(deliver=True)
        finished = finish(driver)
    assert (finished.code, finished.json[0]["error"]["reason"]) == (4, "CopyAborted")
    env.assert_nothing_left(target)
    again = copy.run("run")
    assert again.code == 0, again.err
    env.assert_copied(target)


@pytest.mark.exhaustive
def test_a_copy_survives_the_death_of_a_bookie(env: CrashEnv, tmp_path: Path) -> None:
    """After SIGKILL and restart of the bookie midway, the same run goes on and copies exactly."""
    target = "bookie"
    hold = env.hold_up(MIDWAY, target)
    with BookieScene(env, target, tmp_path) as scene:
        assert hold.reached.wait(SECONDS)
        scene.kill()
        hold.release(deliver=True)
        scene.go_on()
    env.assert_copied(target)
