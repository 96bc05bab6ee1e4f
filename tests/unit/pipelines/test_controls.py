from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from sluice.engine.tasks.limits import Limits
from sluice.pipelines.driver.controls import (
    AGAIN_SECONDS,
    SLICE_BYTES,
    SLICE_SECONDS,
    Controls,
)
from support.engine.sources import ManualClock

DEFAULT = Limits(slice_seconds=SLICE_SECONDS, slice_bytes=SLICE_BYTES)


def test_null_means_the_default(tmp_path: Path) -> None:
    """A copy without limits of its own has the default limits."""
    file = tmp_path / "controls.json"
    file.write_text('{"bytesPerSecond": null, "inFlightBytes": null}')
    assert Controls(file)() == DEFAULT
    assert Controls(None)() == DEFAULT


def test_a_change_of_the_file_holds_within_a_tenth_of_a_second(tmp_path: Path) -> None:
    """The file is read again by then, and not before each block."""
    file = tmp_path / "controls.json"
    file.write_text('{"bytesPerSecond": 1000}')
    clock = ManualClock()
    controls = Controls(file, clock)
    assert controls().bytes_per_second == 1000
    file.write_text('{"bytesPerSecond": 2000, "inFlightBytes": 4194304}')
    clock.sleep(AGAIN_SECONDS / 2)
    assert controls().bytes_per_second == 1000
    clock.sleep(AGAIN_SECONDS)
    assert controls() == replace(DEFAULT, bytes_per_second=2000, in_flight_bytes=4 << 20)


@pytest.mark.parametrize(
    "damage", ["", "{", "[]", '{"bytesPerSecond": "many"}', '{"bytesPerSecond": 0}', None]
)
def test_a_damaged_file_leaves_the_last_limits_and_is_told_once(
    tmp_path: Path, damage: str | None
) -> None:
    """Neither a missing nor a damaged file ends a copy or removes its limits."""
    file = tmp_path / "controls.json"
    file.write_text('{"bytesPerSecond": 1000}')
    clock = ManualClock()
    controls = Controls(file, clock)
    controls()
    clock.sleep(AGAIN_SECONDS)
    if damage is None:
        file.unlink()
    else:
        file.write_text(damage)
    with capture_logs() as logs:
        for _ in range(3):
            assert controls().bytes_per_second == 1000
            clock.sleep(AGAIN_SECONDS)
    (warning,) = logs
    assert (warning["log_level"], warning["file"]) == ("warning", str(file))


def test_a_file_that_was_mended_and_breaks_again_is_told_again(tmp_path: Path) -> None:
    """The warning comes once for each time that it breaks."""
    file = tmp_path / "controls.json"
    clock = ManualClock()
    controls = Controls(file, clock)
    with capture_logs() as logs:
        controls()
        file.write_text("{}")
        clock.sleep(AGAIN_SECONDS)
        controls()
        file.unlink()
        clock.sleep(AGAIN_SECONDS)
        controls()
    assert [log["log_level"] for log in logs] == ["warning", "warning"]


def test_keys_of_a_newer_operator_are_passed_over(tmp_path: Path) -> None:
    """A driver of this version works with an operator of the next."""
    file = tmp_path / "controls.json"
    file.write_text('{"bytesPerSecond": 7, "colour": "blue"}')
    assert Controls(file)().bytes_per_second == 7


def test_a_scopes_copy_is_told_how_many_streams_and_when_to_stop(tmp_path: Path) -> None:
    """Both may change while it runs; null means the default."""
    file = tmp_path / "controls.json"
    clock = ManualClock()
    controls = Controls(file, clock)
    file.write_text('{"parallelism": 3, "stopAtFailure": true}')
    assert (controls().parallelism, controls().stop_at_failure) == (3, True)
    clock.sleep(AGAIN_SECONDS)
    file.write_text('{"parallelism": null, "stopAtFailure": false}')
    assert (controls().parallelism, controls().stop_at_failure) == (DEFAULT.parallelism, False)
