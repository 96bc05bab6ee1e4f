"""Runs of archives that are restored into a real Pravega, where the Java client reads them."""

from __future__ import annotations

import itertools
import random
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from sluice.core.archive.names import Format
from sluice.core.values.archive_layout import DATA
from sluice.engine.copy.report import Outcome
from support.archiving.archiving import EVENTS
from support.command.restores import MERGED, SPLIT, Env, assert_like_the_source
from support.search import FAR, few, searches

if TYPE_CHECKING:
    from localstore import Standalone

FRAME = 108
"""Bytes of an event of 100 bytes in its segment."""

# The first test that needs the gateway compiles it.
pytestmark = pytest.mark.timeout(1200)


@pytest.mark.parametrize(
    ("env", "form"),
    few(itertools.product(["volume", "bucket"], Format), [("bucket", Format.PARQUET)]),
    indirect=["env"],
)
def test_a_stream_that_was_scaled_is_restored_as_it_was(
    env: Env, standalone: Standalone, form: Format
) -> None:
    """From each format, the target has the source's ids, key ranges, bytes, order and config."""
    events = EVENTS[form]
    env.make()
    env.write(events)
    env.scale(*SPLIT)
    env.write(events)
    env.take(form)
    env.scale(*MERGED)
    env.write(events)
    env.take(form)
    report = env.restore.run_inline()
    assert_like_the_source(env, standalone, report)
    assert report.events == env.events
    assert env.restore.run_inline().outcome is Outcome.ALREADY_COMPLETE


@pytest.mark.exhaustive
def test_earlier_runs_are_restored_by_number_and_by_time(
    volume_env: Env, standalone: Standalone
) -> None:
    """Each of three runs gives the stream as it was when that run ended."""
    env = volume_env
    env.make()
    for moves in ([SPLIT], [MERGED], []):
        env.write(2000)
        env.take(Format.SEGMENTS)
        for move in moves:
            env.scale(*move)
    head = env.archive.head()
    assert head is not None
    first, second, _ = head.runs
    between = datetime.fromtimestamp(second.time / 1000, UTC).isoformat(timespec="milliseconds")
    for which, entry in (({"run": 1}, first), ({"until": between}, second)):
        env.restore.target = (env.source[0], f"restored-{entry.run}")
        env.restore.which = which
        report = env.restore.run_inline()
        assert report.outcome is Outcome.COPIED, report.error
        assert report.events == entry.run * 2000
        assert env.foreign.read(*env.restore.target).events == entry.run * 2000
    env.restore.target = (env.source[0], "restored")
    env.restore.which = {}
    assert_like_the_source(env, standalone, env.restore.run_inline())


@pytest.mark.exhaustive
def test_a_run_is_appended_to_a_stream_that_is_written_to(volume_env: Env) -> None:
    """The archive's events follow the present ones, each once, and readers get all of them."""
    env = volume_env
    env.make()
    env.write(3000)
    env.scale(*SPLIT)
    env.write(3000)
    env.take(Format.PARQUET)
    env.foreign.create(*env.restore.target, segments=2)
    env.foreign.write(*env.restore.target, events=1000, keys=8, first=0)
    env.restore.exists = "Append"
    report = env.restore.run_inline()
    assert report.outcome is Outcome.COPIED, report.error
    assert env.foreign.read(*env.restore.target).events == 7000
    assert env.restore.run_inline().outcome is Outcome.ALREADY_COMPLETE
    assert env.foreign.read(*env.restore.target).events == 7000


def test_a_restore_makes_the_scope_where_it_is_asked_to(volume_env: Env) -> None:
    """A restore into an empty store makes the scope on request. Otherwise it names the scope."""
    env = volume_env
    env.make()
    env.write(500)
    env.take(Format.SEGMENTS)
    env.restore.target = (f"{env.source[0]}-new", "restored")
    refused = env.restore.run_inline()
    assert refused.error is not None
    assert refused.error.reason == "TargetScopeNotFound"
    env.restore.scope_policy = "CreateIfAbsent"
    for outcome in (Outcome.COPIED, Outcome.ALREADY_COMPLETE):
        report = env.restore.run_inline()
        assert report.outcome is outcome, report.error
    assert env.foreign.read(*env.restore.target).events == 500


@searches
def test_damage_is_refused_by_name_before_the_target_is_visible(volume_env: Env) -> None:
    """Random changes, missing or swapped objects, and an edited manifest are refused by name."""
    env = volume_env
    env.make()
    env.write(2000)
    env.take(Format.SEGMENTS)
    env.write(2000)
    env.take(Format.SEGMENTS)
    head = env.archive.head()
    assert head is not None
    objects = env.archive.objects
    manifest = head.runs[-1].name
    names = [one.name for one in objects.list(DATA)]
    good = {name: objects.get(name) or b"" for name in (*names, manifest)}
    chance = random.Random(3)  # noqa: S311 - no secrets

    def flipped(name: str) -> bytes:
        data = bytearray(good[name])
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        return bytes(data)

    damages: list[dict[str, bytes | None]] = [
        {(name := chance.choice(names)): flipped(name)} for _ in range(4 * FAR)
    ]
    damages += [
        {names[1]: None},
        {names[0]: good[names[1]], names[1]: good[names[0]]},
        {manifest: flipped(manifest)},
    ]
    for number, damage in enumerate(damages):
        for name, data in damage.items():
            if data is None:
                objects.delete([name])
            else:
                objects.put(name, data)
        env.restore.target = (env.source[0], f"restored-{number}")
        report = env.restore.run_inline()
        assert report.error is not None
        assert report.error.reason == "ArchiveDamaged"
        assert any(name in report.error.message for name in damage)
        assert env.store.describe(env.target) is None
        for name in damage:
            objects.put(name, good[name])
    env.restore.target = (env.source[0], "restored")
    assert env.restore.run_inline().outcome is Outcome.COPIED


@pytest.mark.exhaustive
def test_what_retention_took_between_runs_is_told_and_the_rest_restored(volume_env: Env) -> None:
    """A stream truncated past its archived bytes is restored with a gap, which is reported."""
    env = volume_env
    env.make()
    env.write(2000)
    env.take(Format.SEGMENTS)
    archived = [one.end for one in env.manifest.segments]
    env.write(2000)
    cut = {0: archived[0] + 10 * FRAME, 1: archived[1] + 20 * FRAME}
    env.foreign.truncate(*env.source, offsets=cut)
    env.write(2000)
    env.scale(*SPLIT)
    env.write(2000)
    env.take(Format.SEGMENTS, on_truncation="Record")
    report = env.restore.run_inline()
    assert report.error is not None
    assert report.error.reason == "SourceTruncated"
    assert env.store.describe(env.target) is None
    env.restore.on_truncation = "Record"
    report = env.restore.run_inline()
    assert report.outcome is Outcome.COPIED, report.error
    assert [gap.lost for gap in report.gaps] == [10 * FRAME, 20 * FRAME]
    read = env.foreign.read(*env.restore.target)
    assert read.events == env.events - 30
    assert env.restore.run_inline().outcome is Outcome.ALREADY_COMPLETE
