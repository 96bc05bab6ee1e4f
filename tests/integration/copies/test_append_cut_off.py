"""Appends that SIGKILL cuts off at each step, on a real store: finished, or aborted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from sluice.core.values import identity
from sluice.core.values.model import StreamName
from sluice.engine.copy.abort import abort
from sluice.engine.copy.report import Outcome
from sluice.errors import AbortRefused
from sluice.pipelines.programs.stores import Stores
from support.command.sluice_command import Copy
from support.crash.cut_driver import drive
from support.engine.append_points import APPENDING, Cut
from support.store.inline import SETTINGS, job_of, run_inline

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from localstore import ForeignClient, Standalone
    from localstore.reports import Read
    from sluice.core.values.model import KeyRange, StreamConfig

pytestmark = [pytest.mark.crash, pytest.mark.exhaustive]

EVENTS = 500
KEYS = 64
THERE = 100
EPOCH = 1 << 32
SOURCE = ("cut-off", "source")
ABORTED = [cut for cut in APPENDING if cut.call not in {"append_at", "create", "set_attribute"}]
"""The cuts at which an abort finds another state than at the cut before."""


def parameters(cuts: Iterable[Cut]) -> list[Any]:
    """Return the steps as parameters, with their names as ids."""
    return [pytest.param(cut, id=cut.name.replace(" ", "-")) for cut in cuts]


@pytest.fixture(scope="module")
def source(foreign: ForeignClient) -> Read:
    """Return the content of a stream of three generations of two, three and two segments."""
    foreign.create(*SOURCE, segments=2)
    foreign.write(*SOURCE, events=EVENTS, keys=KEYS)
    assert foreign.scale(*SOURCE, segments=[0], ranges=[(0.0, 0.2), (0.2, 0.5)])
    foreign.write(*SOURCE, events=EVENTS, keys=KEYS, first=EVENTS)
    assert foreign.scale(*SOURCE, segments=[EPOCH | 3, 1], ranges=[(0.2, 1.0)])
    foreign.write(*SOURCE, events=EVENTS, keys=KEYS, first=2 * EVENTS)
    return foreign.read(*SOURCE)


@pytest.fixture(scope="module")
def there(foreign: ForeignClient) -> str:
    """Return the digest of the target's events before the append."""
    name = (SOURCE[0], "there")
    _fill(foreign, name)
    return foreign.read(*name).digest


@pytest.fixture
def copy(tmp_path: Path, standalone: Standalone, foreign: ForeignClient, scope: str) -> Copy:
    """Return a copy into a stream of three segments that has events."""
    target = (scope, "target")
    _fill(foreign, target)
    return Copy(tmp_path, standalone.controller_uri, SOURCE, target, exists="Append")


@pytest.mark.exhaustive
@pytest.mark.parametrize("cut", parameters(APPENDING))
def test_an_append_that_was_cut_off_is_finished_by_the_next_driver(
    cut: Cut, copy: Copy, source: Read, there: str, foreign: ForeignClient, tmp_path: Path
) -> None:
    """The next driver finishes the append. Each event is there once; key ranges and policy stay."""
    made, before = tmp_path / "made", _looks(copy)
    drive(copy, made, cut)
    drive(copy, made)
    read = foreign.read(*copy.target)
    assert read.clean, read
    assert read.events == source.events + THERE
    assert read.digest == _sum(source.digest, there)
    assert _looks(copy) == before
    assert not _left(copy, made)
    assert run_inline(copy).outcome is Outcome.ALREADY_COMPLETE


@pytest.mark.parametrize("cut", parameters(ABORTED))
def test_an_append_that_was_cut_off_is_aborted_or_is_decided(
    cut: Cut, copy: Copy, source: Read, there: str, foreign: ForeignClient, tmp_path: Path
) -> None:
    """An abort restores the target byte for byte. Once the append is decided, it is refused."""
    made, before = tmp_path / "made", _looks(copy)
    drive(copy, made, cut)
    job = job_of(copy)
    with Stores(SETTINGS) as stores:
        store = stores[job.target]
        if cut.decided and cut.call != "delete":
            with pytest.raises(AbortRefused):
                abort(job.request.copy_id, job.request.target, store)
            return
        assert abort(job.request.copy_id, job.request.target, store) is not cut.decided
    expected = _sum(source.digest, there) if cut.decided else there
    assert foreign.read(*copy.target).digest == expected
    assert _looks(copy) == before
    assert not _left(copy, made)


def _fill(foreign: ForeignClient, name: tuple[str, str]) -> None:
    """Make a stream of three segments with events."""
    foreign.create(*name, segments=3)
    foreign.write(*name, events=THERE, keys=10, seed=1)


def _sum(*digests: str) -> str:
    """Return the digest of the events of several streams together; see reports.Read."""
    return f"{sum(int(one, 16) for one in digests) % 2**64:016x}"


def _looks(copy: Copy) -> tuple[StreamConfig, list[KeyRange]]:
    """Return the target's configuration, and the key ranges of the segments that take events."""
    with Stores(SETTINGS) as stores:
        found = stores[job_of(copy).target].describe(_target(copy))
        assert found is not None
        return found.config, [segment.keys for segment in found.tail]


def _left(copy: Copy, made: Path) -> list[str]:
    """Return the existing segments that drivers have made, except those that should stay."""
    job = job_of(copy)
    with Stores(SETTINGS) as stores:
        store = stores[job.target]
        keys = [identity.receipt_key(job.request.copy_id), identity.turns_key()]
        stay = {store.staging_name(_target(copy), 0, key) for key in keys}
        names = sorted(set(made.read_text().split()) - stay)
        return [name for name, info in zip(names, store.infos(names), strict=True) if info]


def _target(copy: Copy) -> StreamName:
    return StreamName(scope=copy.target[0], stream=copy.target[1])
