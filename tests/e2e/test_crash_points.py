"""Processes killed at every step of the copy protocol, on a real store.

A proxy in front of the segment store holds a chosen frame up; then a process is killed with
SIGKILL, and the frame is either delivered late or lost. Whoever runs the copy again finishes it.
The witnesses are not Sluice's: the stand-alone hash script, the official Java client, and what the
proxy saw.
"""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from localstore import ForeignClient, Standalone
from localstore.foreign import ForeignClientError
from support import witness
from support.command import Copy, finish, workers_of
from support.crash import SCALING, STEPS, Nth, Step, is_verifying_read
from support.proxy import FrameProxy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.crash

EVENTS = 400_000
SOURCE = ("in", "events")
SCALED = ("in", "scaled")
EPOCH = 1 << 32
SEGMENTS = 4
PARTS = {"SLUICE_PART_BYTES": str(8 << 20)}


@dataclass(frozen=True)
class Source:
    """A stream that is copied.

    Attributes:
        name: scope and stream.
        events, bytes: how many are in it.
        digest: of the events, by the official reader.
    """

    name: tuple[str, str]
    events: int
    bytes: int
    digest: str


@pytest.fixture(scope="module")
def proxy() -> Iterator[FrameProxy]:
    """A proxy that the store names as its own address."""
    with FrameProxy() as made:
        yield made


@pytest.fixture(scope="module")
def store(proxy: FrameProxy) -> Iterator[Standalone]:
    """A store whose clients all come through the proxy."""
    server = Standalone(published_port=proxy.port)
    proxy.upstream = server.segment_store
    with server:
        yield server


@pytest.fixture(scope="module")
def foreign(store: Standalone) -> Iterator[ForeignClient]:
    """The official client."""
    with ForeignClient(store.controller_uri) as client:
        yield client


@pytest.fixture(scope="module")
def source(foreign: ForeignClient) -> Source:
    """A stream of about 11 MB in each of four segments, in two parts each."""
    foreign.create(*SOURCE, segments=SEGMENTS)
    foreign.create_scope("out")
    foreign.write(*SOURCE, events=EVENTS, keys=400)
    return _seen(foreign, SOURCE, EVENTS)


@pytest.fixture(scope="module")
def scaled(foreign: ForeignClient) -> Source:
    """A stream of two segments, of which one was split, and then all were merged into two."""
    foreign.create(*SCALED, segments=2)
    foreign.create_scope("out")
    events = 10_000
    foreign.write(*SCALED, events=events, keys=400)
    for ended, ranges in [
        ([0], [(0.0, 0.2), (0.2, 0.5)]),
        ([EPOCH | 3, 1], [(0.2, 1.0)]),
    ]:
        assert foreign.scale(*SCALED, segments=ended, ranges=ranges)
        foreign.write(*SCALED, events=10_000, keys=400, first=events)
        events += 10_000
    return _seen(foreign, SCALED, events)


def _seen(foreign: ForeignClient, name: tuple[str, str], events: int) -> Source:
    read = foreign.read(*name)
    assert read.clean
    return Source(name, events, foreign.visible(*name).bytes, read.digest)


@pytest.mark.parametrize("deliver", [True, False], ids=["late", "lost"])
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name.replace(" ", "-"))
def test_a_driver_killed_at_any_step_loses_and_repeats_nothing(
    step: Step,
    deliver: bool,  # noqa: FBT001 - a parameter of the test
    proxy: FrameProxy,
    store: Standalone,
    foreign: ForeignClient,
    source: Source,
    tmp_path: Path,
    say: Callable[[str], None],
) -> None:
    """After SIGKILL of the driver a second run finishes the copy exactly, a third does nothing."""
    target = ("out", f"{step.name.replace(' ', '-').replace(',', '')}-{deliver}".lower())
    copy = Copy(tmp_path, store.controller_uri, SOURCE, target, environment=PARTS)
    hold = proxy.hold_up(step.condition(proxy, source.bytes))
    with copy.running() as driver:
        assert hold.reached.wait(60), "the step was not reached"
        staged = f"{proxy.staged:,} of {source.bytes:,} bytes ({proxy.staged / source.bytes:.0%})"
        driver.send_signal(signal.SIGKILL)
        driver.wait(30)
        say(f"driver killed {step.name}: {staged}")
        if step.name == "midway":
            assert 0.1 < proxy.staged / source.bytes < 0.9
        if not step.published:
            assert_nothing_visible(foreign, target)
        hold.release(deliver=deliver)

    second = copy.run("run", "-o", "json")
    assert second.code == 0, second.err
    assert second.json[0]["events"] in (EVENTS, 0)  # 0: the late frame was the last one needed
    check(proxy, store, foreign, source, target)
    third = copy.run("run", "-o", "json")
    assert (third.code, third.json[0]["outcome"]) == (0, "AlreadyComplete")


@pytest.mark.parametrize(
    ("step", "deliver"),
    [(step, True) for step in SCALING] + [(SCALING[0], False), (SCALING[2], False)],
    ids=lambda one: one.name.replace(" ", "-") if isinstance(one, Step) else str(one),
)
def test_a_driver_killed_between_generations_loses_and_repeats_nothing(
    step: Step,
    deliver: bool,  # noqa: FBT001 - a parameter of the test
    proxy: FrameProxy,
    store: Standalone,
    foreign: ForeignClient,
    scaled: Source,
    tmp_path: Path,
) -> None:
    """A scale event that was begun is finished, by whoever comes next, exactly once."""
    target = ("out", f"{step.name.replace(' ', '-')}-{deliver}".lower())
    copy = Copy(tmp_path, store.controller_uri, SCALED, target)
    hold = proxy.hold_up(step.condition(proxy, scaled.bytes))
    with copy.running() as driver:
        assert hold.reached.wait(60), "the step was not reached"
        driver.send_signal(signal.SIGKILL)
        driver.wait(30)
        hold.release(deliver=deliver)
    second = copy.run("run", "-o", "json")
    assert second.code == 0, second.err
    check(proxy, store, foreign, scaled, target)
    third = copy.run("run", "-o", "json")
    assert (third.code, third.json[0]["outcome"]) == (0, "AlreadyComplete")


@pytest.mark.parametrize(
    "step",
    [
        STEPS[1],
        STEPS[2],
        Step("while verifying", lambda *_: Nth(is_verifying_read, 20)),
    ],
    ids=lambda step: step.name.replace(" ", "-"),
)
def test_a_killed_worker_costs_time_only(
    step: Step,
    proxy: FrameProxy,
    store: Standalone,
    foreign: ForeignClient,
    source: Source,
    tmp_path: Path,
    say: Callable[[str], None],
) -> None:
    """After SIGKILL of a Python worker the same run goes on and copies exactly."""
    target = ("out", f"worker-{step.name.replace(' ', '-')}")
    copy = Copy(tmp_path, store.controller_uri, SOURCE, target, environment=PARTS)
    hold = proxy.hold_up(step.condition(proxy, source.bytes))
    with copy.running("run", "-o", "json") as driver:
        assert hold.reached.wait(60), "the step was not reached"
        staged = f"{proxy.staged:,} of {source.bytes:,} bytes ({proxy.staged / source.bytes:.0%})"
        victims = workers_of(driver.pid)
        assert victims
        os.kill(victims[0], signal.SIGKILL)
        say(f"worker killed {step.name}: {staged}")
        hold.release(deliver=True)
        finished = finish(driver)
    assert finished.code == 0, finished.err
    assert finished.json[0]["events"] == EVENTS
    check(proxy, store, foreign, source, target)


def test_two_drivers_of_one_plan_copy_it_once(
    proxy: FrameProxy,
    store: Standalone,
    foreign: ForeignClient,
    source: Source,
    tmp_path: Path,
) -> None:
    """Two drivers that run the same copy at once both succeed, and the target has it once."""
    target = ("out", "two-drivers")
    copy = Copy(tmp_path, store.controller_uri, SOURCE, target, environment=PARTS)
    with copy.running("run", "-o", "json") as one, copy.running("run", "-o", "json") as other:
        for finished in (finish(one), finish(other)):
            assert finished.code == 0, finished.err
            assert finished.json[0]["outcome"] in ("Copied", "AlreadyComplete")
    check(proxy, store, foreign, source, target)


def test_an_aborted_copy_leaves_nothing_and_can_be_run_again(
    proxy: FrameProxy,
    store: Standalone,
    foreign: ForeignClient,
    source: Source,
    tmp_path: Path,
) -> None:
    """Aborting a running copy ends its driver, deletes all of it, and a new run starts anew."""
    target = ("out", "aborted")
    copy = Copy(tmp_path, store.controller_uri, SOURCE, target, environment=PARTS)
    midway = STEPS[2].condition(proxy, source.bytes)
    hold = proxy.hold_up(midway)
    with copy.running("run", "-o", "json") as driver:
        assert hold.reached.wait(60)
        aborted = copy.run("abort")
        assert aborted.code == 0, aborted.err
        hold.release(deliver=True)
        finished = finish(driver)
    assert (finished.code, finished.json[0]["error"]["reason"]) == (4, "CopyAborted")
    witness.assert_nothing_left(store.segment_store, of_target(proxy, target))
    again = copy.run("run")
    assert again.code == 0, again.err
    check(proxy, store, foreign, source, target, same_ids=False)


def assert_nothing_visible(foreign: ForeignClient, target: tuple[str, str]) -> None:
    """A foreign reader finds no event in the target, if there is a target at all."""
    try:
        visible = foreign.visible(*target)
    except ForeignClientError as error:
        assert "NOT_FOUND" in str(error), error  # noqa: PT017 - no stream is as good as no event
    else:
        assert visible.bytes == 0


def of_target(proxy: FrameProxy, target: tuple[str, str]) -> set[str]:
    """Staging segments that were made for a target."""
    prefix = "/".join(target) + "/"
    return {name for name in witness.staging_of(proxy) if name.startswith(prefix)}


def check(
    proxy: FrameProxy,
    store: Standalone,
    foreign: ForeignClient,
    source: Source,
    target: tuple[str, str],
    *,
    same_ids: bool = True,
) -> None:
    """The copy is exact, readable, and alone."""
    witness.assert_equal(store.segment_store, foreign, source.name, target, same_ids=same_ids)
    witness.assert_readable(foreign, target, events=source.events, digest=source.digest)
    made = of_target(proxy, target)
    assert len(made) > SEGMENTS + 1  # some segments had parts, or came later; and the journal
    witness.assert_nothing_left(store.segment_store, made)
