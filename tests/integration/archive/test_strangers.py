"""Other clients' objects at the path of an archive, in each kind of object store."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from sluice.archive.runs.leases import Lease
from sluice.archive.runs.sweep import sweep
from sluice.archive.runs.verify import verify_archive
from sluice.core.archive.lease import LeaseWork
from sluice.core.values.archive_layout import ARCHIVED, LEASES
from sluice.engine.archive.erase import erase_archive
from sluice.errors import ArchiveDamaged, InvalidSpec
from support.archiving.archive_runs import REQUEST, archive_once, root_of
from support.engine.sources import put_source
from support.model import ModelStore, World

if TYPE_CHECKING:
    from sluice.archive.objects.objects import Objects

# The first test that needs the gateway compiles it.
pytestmark = pytest.mark.timeout(1200)

STRANGERS = {
    "data/2024/01/users.parquet": b"precious",
    "data/00000000/readme": b"precious",
    "events/2024/clicks.json": b"{}",
    "heads/1": b"mine",
    f"leases/{'AB' * 16}": b"signed",
    "leases/car/2024.pdf": b"x" * (1 << 20),
    "runs/marathon.csv": b"42",
    f"work/{'ab' * 16}/draft.txt": b"...",
    "readme.md": b"hello",
}


@pytest.fixture
def store() -> ModelStore:
    """Return a store with a stream."""
    world = World()
    put_source(world, [40, 40], [9])
    return ModelStore(world)


def put(objects: Objects) -> None:
    """Put the objects of a team at the path of the archive."""
    for name, data in STRANGERS.items():
        objects.put(name, data)


def held(objects: Objects) -> dict[str, bytes | None]:
    """Return all objects in the store."""
    return {one.name: objects.get(one.name) for one in objects.list()}


def test_an_archive_that_is_deleted_leaves_what_is_not_of_it(
    objects: Objects, store: ModelStore
) -> None:
    """Foreign objects beside the archive stay, byte for byte, and are counted."""
    assert archive_once(store, objects).error is None
    put(objects)
    erased = erase_archive(REQUEST, root_of(objects))
    assert held(objects) == STRANGERS
    assert (erased.kept, erased.strangers) == ("", len(STRANGERS) - 1)
    assert set(erased.names) <= set(STRANGERS)


def test_a_run_and_a_sweep_go_on_beside_what_is_not_of_them(
    objects: Objects, store: ModelStore
) -> None:
    """Foreign objects are not swept. An object that is no valid lease protects nothing."""
    assert archive_once(store, objects).error is None
    put(objects)
    assert archive_once(store, objects, REQUEST.model_copy(update={"run_key": "2"})).error is None
    archive = root_of(objects).archive(REQUEST.path)
    assert verify_archive(archive).problems == []
    sweep(archive, grace=3600)
    there = held(objects)
    assert {name: there[name] for name in STRANGERS} == STRANGERS


@pytest.mark.parametrize("name", sorted(STRANGERS))
def test_a_first_run_begins_nowhere_where_its_folders_are_in_use(
    objects: Objects, store: ModelStore, name: str
) -> None:
    """The error names the field, the foreign objects and the remedy. Nothing is put."""
    objects.put(name, STRANGERS[name])
    if not name.startswith(ARCHIVED):
        assert archive_once(store, objects).error is None
        return
    with pytest.raises(InvalidSpec, match="is none of an archive's") as refused:
        archive_once(store, objects)
    assert refused.value.field == "spec.destination.path"
    assert repr(name) in refused.value.message
    assert held(objects) == {name: STRANGERS[name]}


def test_a_lease_that_cannot_be_read_holds_up_its_last_day_only(
    objects: Objects, store: ModelStore
) -> None:
    """An unreadable lease has no known owner. It holds for a day like any lease."""
    assert archive_once(store, objects).error is None
    name = f"{LEASES}{uuid4().hex}"
    objects.put(name, b"{}")
    with pytest.raises(ArchiveDamaged, match=name):
        erase_archive(REQUEST, root_of(objects))
    with Lease(objects, uuid4().hex, LeaseWork.READ, grace=0) as lease:
        assert name in {one.name for one in lease.look().over}
