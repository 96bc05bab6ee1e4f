"""`sluice` with scopes that are archived and restored, as the Java client sees them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final
from uuid import uuid4

import pytest

from sluice.archive.runs.archive_root import ArchiveRoot
from sluice.core.scope.request import RestoreFrom, ScopeRequest, Selector
from sluice.core.values.model import StoreAddress
from sluice.core.workloads.answers import Planned, ScopeEnded
from sluice.core.workloads.unplanned import Unplanned
from sluice.engine.workloads.scope import ScopeWorkload
from sluice.kube.stores.connections import unseen
from sluice.pipelines.driver.driver import DriverOptions, drive
from sluice.pipelines.programs.stores import Stores
from support.command.restores import bucket_store, volume
from support.command.scope_files import PATH, ScopeFile, states
from support.store.inline import SETTINGS
from support.store.scopes import STREAMS, assert_equal, fill, names_in, seen
from support.until import TIGHT, until

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from localstore import ForeignClient, Standalone
    from s3gateway import Gateway
    from sluice.config import Settings
    from support.store.scopes import Seen

LARGE: Final = "payments-1"
"""A stream of some MB, which is moved by Spark's tasks; without it no JVM is started."""

NAMES: Final = (
    "audit-0",
    "clicks-1",
    "event-1",
    "events",
    "orders-2",
    "orders-4",
    "orders-5",
)
"""Empty and scaled, small, sealed, called like a part of an archive, split and merged, truncated,
and with a retention."""

SKETCHES: Final = tuple(
    replace(one, name="events") if one.name == "event-0" else one
    for one in STREAMS
    if one.name in {*NAMES, LARGE, "event-0"}
)
SMALL: Final = {"streams": {"exclude": [{"type": "Exact", "value": LARGE}]}}
COPIED: Final = dict.fromkeys(NAMES, "Copied")

Shop = tuple[str, "dict[str, Seen]"]


@pytest.fixture(scope="module")
def shop(standalone: Standalone, foreign: ForeignClient) -> Shop:
    """Return a scope of 8 streams, no two alike, and the witnesses' view. No test changes it."""
    scope = f"shop-{uuid4().hex[:8]}"
    fill(foreign, scope, SKETCHES)
    return scope, seen(standalone.segment_store, foreign, scope, [*NAMES, LARGE])


def small(sources: Mapping[str, Seen]) -> dict[str, Seen]:
    """Return the streams that are not large."""
    return {name: one for name, one in sources.items() if name != LARGE}


@pytest.fixture
def in_volume(tmp_path: Path) -> dict[str, object]:
    """Return a volume for archives."""
    return volume(tmp_path)


@pytest.fixture
def in_bucket_store(tmp_path: Path, gateway: Gateway, bucket: str) -> dict[str, object]:
    """Return a bucket for archives."""
    return bucket_store(tmp_path, gateway, bucket)


def test_a_scope_is_archived_into_a_bucket_and_restored(
    tmp_path: Path,
    standalone: Standalone,
    foreign: ForeignClient,
    shop: Shop,
    in_bucket_store: dict[str, object],
) -> None:
    """All streams come back with bytes, digests, events, ids, key ranges, policies and tags."""
    scope, sources = shop
    uri = standalone.controller_uri
    down = ScopeFile(tmp_path, uri, in_bucket_store, "down", scope)
    copied = COPIED | {LARGE: "Copied"}
    assert down.states() == copied
    target = f"{scope}-bucket"
    back = ScopeFile(tmp_path, uri, in_bucket_store, "back", target, restores=True)
    assert back.states() == copied
    assert_equal(sources, seen(standalone.segment_store, foreign, target))
    assert back.run("verify").code == 0


@pytest.mark.exhaustive
def test_streams_that_cannot_be_archived_or_restored_fail_by_name(
    tmp_path: Path,
    standalone: Standalone,
    foreign: ForeignClient,
    shop: Shop,
    in_volume: dict[str, object],
) -> None:
    """Other streams are archived or restored. Once the fault is mended, so are the failed ones."""
    scope, sources = shop
    uri = standalone.controller_uri
    other = f"{scope}-other"
    foreign.create_scope(other)
    foreign.create(other, "clicks-1")
    first = ScopeFile(tmp_path, uri, in_volume, "first", other)
    assert first.states() == {"clicks-1": "Copied"}
    down = ScopeFile(tmp_path, uri, in_volume, "down", scope, spec=SMALL | {"onExists": "Append"})
    assert down.states(code=2) == COPIED | {"clicks-1": "InvalidSpec"}
    (down.place / "clicks-1").rename(tmp_path / "aside")
    assert down.states() == COPIED

    damaged = next(one for one in (down.place / "orders-2" / "data").rglob("*.zst"))
    whole = damaged.read_bytes()
    damaged.write_bytes(bytes([whole[0] ^ 1]) + whole[1:])
    target = f"{scope}-back"
    back = ScopeFile(tmp_path, uri, in_volume, "back", target, restores=True)
    assert back.states(code=6) == COPIED | {"orders-2": "ArchiveDamaged"}
    assert set(names_in(foreign, target) or ()) == set(NAMES) - {"orders-2"}
    damaged.write_bytes(whole)
    assert back.states() == COPIED
    # The first attempt had begun this target, so the store gives its segments other ids now.
    targets = seen(standalone.segment_store, foreign, target)
    assert_equal(small(sources), targets, same_ids=False)


@pytest.mark.exhaustive
def test_commands_that_are_killed_go_on(
    tmp_path: Path,
    standalone: Standalone,
    foreign: ForeignClient,
    shop: Shop,
    in_volume: dict[str, object],
) -> None:
    """Killed archives and restores go on. Finished streams are not redone, and nothing is left."""
    scope, sources = shop
    uri, single = standalone.controller_uri, {"parallelism": 1}
    slow = single | {"limits": {"bytesPerSecond": "200Ki"}}  # six seconds for all streams
    down = ScopeFile(tmp_path, uri, in_volume, "down", scope, spec=SMALL | slow)

    def archived() -> int:
        return len([*down.place.glob("*/heads/*")])

    def is_over() -> bool:
        # A run that is killed between its head and the deletion of its notes leaves these to a
        # sweep.
        heads = down.place.glob("*/heads/*")
        return any(not [*head.parents[1].glob("work/*")] for head in heads)

    with down.running() as process:
        until("an archive", is_over, poll=TIGHT)
        process.kill()
        process.wait()
    assert 0 < archived() < len(NAMES)
    down.spec = SMALL | single
    assert states(down.run("run", "-o", "json")) == COPIED
    assert archived() == len(NAMES)
    assert not [*down.place.glob("**/work/*")]

    target = f"{scope}-killed"
    back = ScopeFile(tmp_path, uri, in_volume, "back", target, restores=True, spec=slow)
    with back.running() as process:
        until("a target", lambda: bool(names_in(foreign, target)), poll=TIGHT)
        process.kill()
        process.wait()
    assert set(names_in(foreign, target) or ()) < set(NAMES)
    back.spec = single
    assert states(back.run("run", "-o", "json")) == COPIED
    assert_equal(small(sources), seen(standalone.segment_store, foreign, target))
    # A killed driver leaves leases, which expire within a day.
    assert back.run("abort").code == 0
    assert set(names_in(foreign, target) or ()) == set(NAMES)


@pytest.mark.exhaustive
def test_a_scope_is_moved_into_a_folder_of_archives_and_restored(
    tmp_path: Path,
    standalone: Standalone,
    foreign: ForeignClient,
    in_volume: dict[str, object],
) -> None:
    """The scope and its streams are gone after the move. After the restore they are as before."""
    scope, uri = f"shop-{uuid4().hex[:8]}", standalone.controller_uri
    names = ["audit-0", "clicks-1", "orders-2"]
    fill(foreign, scope, [one for one in SKETCHES if one.name in names])
    sources = seen(standalone.segment_store, foreign, scope, names)
    copied = dict.fromkeys(names, "Copied")
    spec = {"sourceOnComplete": "Delete"}
    down = ScopeFile(tmp_path, uri, in_volume, "down", scope, spec=spec)
    assert down.states() == copied
    assert names_in(foreign, scope) is None
    back = ScopeFile(tmp_path, uri, in_volume, "back", scope, restores=True)
    assert back.states() == copied
    # The store gives other segment ids to a stream whose name was used before.
    assert_equal(sources, seen(standalone.segment_store, foreign, scope), same_ids=False)


def driven(
    request: ScopeRequest, folder: Path, uri: str, settings: Settings
) -> tuple[dict[str, str], bool]:
    """Run a driver. Return the results in the target's log, and whether an abandon clears it.

    The log is read without the volume, as by an operator.
    """
    source, target = StoreAddress(backend="volume", uri="volume://backups/streams"), uri
    hidden, workload = ArchiveRoot(source.uri, unseen), ScopeWorkload(request)
    address = StoreAddress(uri=target)
    with Stores(settings) as stores:
        sites = ((source, hidden),), (address, stores[address])
        wanted = workload.ask(*sites, known=None, again=True)
        assert isinstance(wanted, Planned)
        assert isinstance(wanted.plan, Unplanned)
        file = folder / f"{request.target}.json"
        file.write_text(wanted.plan.model_dump_json())
        assert drive(DriverOptions(plan=file), settings) is None
        found = workload.ask(*sites, known=wanted.plan, again=False)
        assert isinstance(found, ScopeEnded)
        workload.abandon([hidden], stores[address], known=wanted.plan)
        gone = workload.ask(*sites, known=None, again=False) == wanted
    return {one.stream: one.state.value for one in found.results}, gone


def test_a_driver_tells_in_the_target_what_it_has_restored_from_a_volume(
    tmp_path: Path, standalone: Standalone, foreign: ForeignClient, in_volume: dict[str, object]
) -> None:
    """The target's log has the driver's results, even if nothing was to be restored."""
    uri, scope = standalone.controller_uri, f"shop-{uuid4().hex[:8]}"
    foreign.create_scope(scope)
    foreign.create(scope, "clicks", segments=2)
    foreign.write(scope, "clicks", events=50, keys=4)
    down = ScopeFile(tmp_path, uri, in_volume, "down", scope)
    assert down.states() == {"clicks": "Copied"}
    settings = replace(SETTINGS, volumes_dir=tmp_path / "volumes")
    back = ScopeRequest(
        scope_id=uuid4().hex,
        source=PATH,
        target=f"{scope}-back",
        restore=RestoreFrom(),
        make_scope=True,
    )
    assert driven(back, tmp_path, uri, settings) == ({"clicks": "Copied"}, True)
    before = seen(standalone.segment_store, foreign, scope)
    assert_equal(before, seen(standalone.segment_store, foreign, back.target))
    none = {"include": (Selector(type="Exact", value="other"),), "target": f"{scope}-none"}
    nothing = back.model_copy(update={"scope_id": uuid4().hex, **none})
    assert driven(nothing, tmp_path, uri, settings) == ({}, True)
    assert names_in(foreign, nothing.target) is None
