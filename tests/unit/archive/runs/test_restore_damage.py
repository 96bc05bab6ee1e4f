"""Restores of damaged archives, which are refused before any byte is visible."""

from __future__ import annotations

import hashlib
import random

import pytest

from sluice.core.archive.names import Format
from sluice.core.values.archive_layout import DATA, EVENTS
from sluice.errors import ArchiveDamaged
from support.archiving.restore_env import BLOCK, Env
from support.model import ModelStore, World

FORMATS = list(Format)


@pytest.mark.parametrize("form", FORMATS)
def test_20_flipped_bytes_are_each_refused_by_name(form: Format) -> None:
    """A byte changed in any listed object: the error names the object, and nothing is visible."""
    env = Env(form).three()
    whole = dict(env.objects.held)
    chance = random.Random(11)  # noqa: S311 - no secrets
    last = env.archive.head().runs[-1].name  # type: ignore[union-attr]
    names = sorted(one for one in whole if one.startswith((DATA, EVENTS)) and whole[one])
    for _ in range(20):
        name = chance.choice([*names, last])
        bad = bytearray(whole[name])
        bad[chance.randrange(len(bad))] ^= 1 << chance.randrange(8)
        env.objects.held = {**whole, name: bytes(bad)}
        assert_refused(env, name)


@pytest.mark.parametrize("form", FORMATS)
def test_missing_and_swapped_objects_are_refused_by_name(form: Format) -> None:
    """So are a missing object, and an object that holds another one's bytes."""
    env = Env(form).three()
    whole = dict(env.objects.held)
    names = sorted(one for one in whole if one.startswith((DATA, EVENTS)) and whole[one])
    manifest = env.archive.head().runs[-1].name  # type: ignore[union-attr]
    for name in (names[0], names[-1], manifest):
        env.objects.held = {one: data for one, data in whole.items() if one != name}
        assert_refused(env, name)
    data = [one for one in names if one.startswith(DATA)]
    env.objects.held = {**whole, data[0]: whole[data[1]], data[1]: whole[data[0]]}
    assert_refused(env, data[0])


def assert_refused(env: Env, name: str) -> None:
    """Check that the restore fails for this object, and leaves nothing."""
    store = ModelStore(env.world, block=BLOCK)
    try:
        plan = env.plan(store, env.request())
    except ArchiveDamaged as error:
        named = error.name
    else:
        (report,) = env.runner(store, plan).run()
        assert report.error is not None
        assert report.error.reason == "ArchiveDamaged"
        assert report.cleaned
        named = next(one for one in report.error.message.split() if one == name)
    assert named == name
    env.assert_nothing_is_there()
    env.world = World()  # a store frees the name of a deleted journal only later


def test_a_manifest_that_was_edited_with_its_head_is_refused() -> None:
    """The unchanged bytes reveal new names and digests."""
    env = Env()
    env.take()
    head = env.archive.head()
    assert head is not None
    manifest = env.archive.manifest(head.runs[0])
    (segment,) = manifest.segments
    (stretch,) = segment.stretches
    other = hashlib.sha256(b"other").hexdigest()
    edited = manifest.model_copy(
        update={
            "segments": (
                segment.model_copy(
                    update={"stretches": (stretch.model_copy(update={"digests": other}),)}
                ),
            )
        }
    )
    env.objects.held = {
        name: data for name, data in env.objects.held.items() if name.startswith(DATA)
    }
    env.archive.record(edited, None, verified=True)
    report = env.restore()
    assert report.error is not None
    assert report.error.reason == "ArchiveDamaged"
    assert other in report.error.message
    env.assert_nothing_is_there()
