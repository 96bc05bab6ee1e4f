"""Runs with more objects than any client can list."""

import pytest

from sluice.archive.runs import notes
from sluice.core.values.archive_layout import WORK
from support.archiving.archive_runs import archive_once, last_run
from support.engine.plans import SOURCE
from support.engine.sources import events_of, put_source
from support.model import ModelStore, World, segment_name
from support.model.memory_objects import MemoryObjects


def test_a_run_whose_notes_fit_in_no_memory_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It ends before it has put all, since its manifest would be too long.

    The archive does not change.
    """
    objects, world = MemoryObjects(), World()
    put_source(world, [30])
    store = ModelStore(world)
    assert archive_once(store, objects).error is None
    before = last_run(objects)
    world.segments[segment_name(SOURCE, 0)].data += events_of([30] * 40, seed=5)
    monkeypatch.setattr(notes, "MOST_NOTES", 8000)
    report = archive_once(store, objects)
    assert report.error is not None
    assert (report.error.reason, report.cleaned) == ("PlanTooLarge", True)
    assert last_run(objects) == before
    assert list(objects.list(WORK)) == []
