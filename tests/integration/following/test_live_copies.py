"""Live copies on a real store: their end, and their targets in the view of other clients."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from sluice.core.values import identity
from sluice.core.values.model import (
    RetentionType,
    Scaling,
    StoreAddress,
    StreamConfig,
    StreamName,
    StreamRetention,
)
from sluice.engine.copy.report import Outcome
from sluice.engine.follow import watch
from sluice.pipelines.programs.stores import Stores
from sluice.stores.pravega import names
from support.command.sluice_command import Copy
from support.store.inline import SETTINGS, job_of, run_inline
from support.store.live_copies import Follower, is_live, tags_of
from support.until import until
from support.witness.foreign_witness import assert_equal, left_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from localstore import ForeignClient, Standalone

KEYS = 16
SIZE = 108
"""Bytes of an event with its header."""
WEEK = StreamRetention(type=RetentionType.TIME, minimum=7 * 86_400_000)


@pytest.fixture
def copy(scope: str, standalone: Standalone, foreign: ForeignClient, tmp_path: Path) -> Copy:
    """Return a copy that follows a source of two segments with events."""
    source = (scope, "source")
    foreign.create(*source, segments=2)
    foreign.write(*source, events=2000, keys=KEYS)
    return Copy(tmp_path, standalone.controller_uri, source, (scope, "target"), mode="Continuous")


def config_of(copy: Copy, stream: tuple[str, str]) -> StreamConfig:
    """Return the configuration of a stream."""
    with Stores(SETTINGS) as stores:
        name = StreamName(scope=stream[0], stream=stream[1])
        found = stores[StoreAddress(uri=copy.uri)].configuration(name)
    assert found is not None
    return found


def configure(copy: Copy, stream: tuple[str, str], config: StreamConfig) -> None:
    """Change the configuration of a stream."""
    with Stores(SETTINGS) as stores:
        name = StreamName(scope=stream[0], stream=stream[1])
        stores[StoreAddress(uri=copy.uri)].update_stream(name, config)


def size_of(foreign: ForeignClient, stream: tuple[str, str]) -> int:
    """Return the offset behind the last byte of all segments of a stream together."""
    return sum(one.end for one in foreign.info(*stream).segments)


def remains(copy: Copy, server: Standalone) -> list[str]:
    """Return the remaining journals and staging segments of a copy."""
    copy_id = job_of(copy).request.copy_id
    target = StreamName(scope=copy.target[0], stream=copy.target[1])
    keys = [identity.journal_key(copy_id, number) for number in range(16)]
    keys += [identity.staging_key(copy_id, index, 0) for index in range(2)]
    asked = [names.staging_name(target, segment, key) for segment in (0, 1) for key in keys]
    return left_of(server.segment_store, asked)


def verified(copy: Copy) -> Any:
    """Return the output of `sluice verify` about the copy."""
    ended = copy.run("verify", "-o", "json")
    (found,) = ended.json["verifications"]
    assert (ended.code == 0) == (found["result"] == "Equal"), ended.err
    return found


@pytest.mark.exhaustive
def test_a_live_target_is_kept_like_its_source(
    copy: Copy, foreign: ForeignClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A live target gets the source's retention and tags, and later changes of them."""
    monkeypatch.setattr(watch, "CONFIG_SECONDS", 1.0)
    configure(copy, copy.source, StreamConfig(scaling=Scaling(min_segments=2), tags=("team=a",)))
    with Follower(copy) as follower:
        first = config_of(copy, copy.target)
        assert "team=a" in first.tags
        changed = StreamConfig(scaling=Scaling(min_segments=2), retention=WEEK, tags=("team=b",))
        configure(copy, copy.source, changed)
        until("the change", lambda: config_of(copy, copy.target).retention == WEEK)
        now = config_of(copy, copy.target)
        assert set(identity.without_ours(now.tags)) == {"team=b"}
        assert is_live(copy)
        foreign.write(*copy.source, events=100, keys=KEYS, first=2000)
        assert foreign.seal(*copy.source)
        assert follower.ended().outcome is Outcome.COPIED
    final = config_of(copy, copy.target)
    assert final.retention == WEEK
    assert set(identity.without_ours(final.tags)) == {"team=b"}
    assert identity.completed(final.tags, job_of(copy).request.copy_id)


@pytest.mark.exhaustive
def test_an_ended_live_copy_leaves_a_stream_like_any_other(
    copy: Copy, standalone: Standalone, foreign: ForeignClient
) -> None:
    """`sluice abort` fences a follower, and leaves nothing of the copy but the target."""
    with Follower(copy) as follower:
        foreign.write(*copy.source, events=500, keys=KEYS, first=2000)
        until("all is there", lambda: size_of(foreign, copy.target) == 2500 * SIZE)
        ended = copy.run("abort")
        assert ended.code == 0, ended.err
        assert "stays as far as it has come" in ended.out + ended.err
        foreign.write(*copy.source, events=500, keys=KEYS, first=2500)
        report = follower.ended()
    assert report.error is not None
    assert report.error.reason in {"CopyAborted", "TargetExists"}, report.error
    assert tags_of(copy, copy.target) == ()
    assert remains(copy, standalone) == []
    assert size_of(foreign, copy.target) == 2500 * SIZE
    foreign.write(*copy.target, events=100, keys=KEYS, first=2500)
    read = foreign.read(*copy.target)
    assert (read.clean, read.events) == (True, 2600)
    again = copy.run("abort")
    assert again.code == 0, again.err
    assert "nothing to abort" in again.out + again.err
    refused = copy.run("plan")
    assert refused.code != 0
    assert "exists and this copy did not make it" in refused.err


@pytest.mark.exhaustive
def test_a_live_copy_is_verified_and_translated_while_it_is_written_to(
    copy: Copy, foreign: ForeignClient
) -> None:
    """A live copy is verified up to its positions. `sluice position` refuses later ones."""
    with Follower(copy):
        stop = foreign.start_writer(*copy.source, rate=500, keys=KEYS, first=2000)
        found = verified(copy)
        mapped = copy.run("position", "-o", "json")
        live = stop()
        foreign.create_group(copy.source[0], "billing", copy.source[1])
        foreign.read_group(copy.source[0], "billing", events=1500)
        total = (2000 + live.events) * SIZE
        until("all is there", lambda: size_of(foreign, copy.target) == total)
        group = copy.run(
            "position", "--reader-group", "billing", "--apply", "--as", "copied", "-o", "json"
        )
    assert (found["result"], found["pairedBy"]) == ("Equal", "Copy")
    assert all(one["proved"] is not None for one in found["segments"])
    assert mapped.code == 0, mapped.err
    assert sum(one["to"] for one in mapped.json["segments"]) >= 2000 * SIZE
    assert group.code == 0, group.err
    assert group.json["applied"] == "Created"
    foreign.write(*copy.source, events=500, keys=KEYS, first=2000 + live.events)
    foreign.create_group(copy.source[0], "ahead", copy.source[1])
    foreign.read_group(copy.source[0], "ahead", events=2500 + live.events)
    ahead = copy.run("position", "--reader-group", "ahead")
    assert ahead.code != 0
    assert "has not got this position" in ahead.err


@pytest.mark.exhaustive
def test_a_target_whose_head_moves_is_followed_and_verified(
    copy: Copy, standalone: Standalone, foreign: ForeignClient
) -> None:
    """A truncation by the target's retention is no damage to the follower or a comparison."""
    with Follower(copy) as follower:
        ends = {one.id: one.end for one in foreign.info(*copy.target).segments}
        assert foreign.truncate(*copy.target, offsets=ends)
        foreign.write(*copy.source, events=500, keys=KEYS, first=2000)
        until("all is there", lambda: size_of(foreign, copy.target) == 2500 * SIZE)
        found = verified(copy)
        assert (found["result"], found["differences"]) == ("Equal", [])
        assert sum(one["taken"] for one in found["segments"]) == 2000 * SIZE
        assert foreign.seal(*copy.source)
        assert follower.ended().outcome is Outcome.COPIED
    assert verified(copy)["result"] == "Equal"
    assert foreign.read(*copy.target).events == 500
    assert remains(copy, standalone) == []


def test_a_live_target_is_a_source_and_no_target_of_another_copy(
    copy: Copy,
    standalone: Standalone,
    foreign: ForeignClient,
    tmp_path: Path,
    say: Callable[[str], None],
) -> None:
    """A live target can be a source. Copies that would make it or append to it are refused."""

    def other(name: str, source: tuple[str, str], target: tuple[str, str], **more: Any) -> Copy:
        folder = tmp_path / name
        folder.mkdir()
        return Copy(folder, copy.uri, source, target, name=name, **more)

    scope = copy.source[0]
    with Follower(copy):
        onward = other("onward", copy.target, (scope, "onward"))
        assert run_inline(onward).outcome is Outcome.COPIED
        assert_equal(standalone.segment_store, foreign, copy.source, onward.target)
        same = other("same", copy.source, copy.target, mode="Continuous").run("plan")
        assert same.code != 0
        assert "follows its source by another copy" in same.err
        append = other("append", copy.source, copy.target, exists="Append").run("plan")
        assert append.code != 0
        assert "takes no other events meanwhile" in append.err
        assert "stopWhen" in append.err
        say(json.dumps([same.err, append.err]))
    assert is_live(copy)


@pytest.mark.exhaustive
def test_a_target_that_lost_whole_segments_to_its_retention_is_followed_on(
    copy: Copy, foreign: ForeignClient
) -> None:
    """Following and comparing go on after the target's retention drops whole old segments."""
    with Follower(copy):
        first = [one.id for one in foreign.info(*copy.source).segments]
        ranges = [(0.0, 0.3), (0.3, 0.6), (0.6, 1.0)]
        assert foreign.scale(*copy.source, segments=first, ranges=ranges)
        foreign.write(*copy.source, events=500, keys=KEYS, first=2000)
        until("all is there", lambda: size_of(foreign, copy.target) == 2500 * SIZE)
    tail = [one for one in foreign.info(*copy.target).segments if one.id not in first]
    assert len(tail) == len(ranges)
    assert foreign.truncate(*copy.target, offsets={one.id: 0 for one in tail})
    until(
        "the first segments are gone",
        lambda: not {one.id for one in foreign.info(*copy.target).segments} & set(first),
    )
    with Follower(copy) as follower:
        foreign.write(*copy.source, events=300, keys=KEYS, first=2500)
        until("all is there", lambda: size_of(foreign, copy.target) == 800 * SIZE)
        found = verified(copy)
        assert (found["result"], found["differences"]) == ("Equal", [])
        assert foreign.seal(*copy.source)
        assert follower.ended().outcome is Outcome.COPIED
    found = verified(copy)
    assert (found["result"], found["differences"]) == ("Equal", [])
    assert foreign.read(*copy.target).events == 800
