"""`sluice verify` on real stores. The Java client writes, and the stand-alone script hashes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from segment_hash import segment_report
from sluice.engine.copy.report import Outcome
from support.command.sluice_command import Copy
from support.store.inline import run_inline

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from localstore import ForeignClient, Standalone
    from support.command.sluice_command import Finished

EVENTS = 2000
KEYS = 32
FRAME = 108
"""Bytes of an event of 100 bytes in its segment."""
EPOCH = 1 << 32


@pytest.fixture
def copy(tmp_path: Path, standalone: Standalone, scope: str) -> Copy:
    """Return a copy within a scope of its own, whose source is still to be made."""
    return Copy(tmp_path, standalone.controller_uri, (scope, "source"), (scope, "target"))


def named(stream: tuple[str, str], store: str = "local") -> str:
    """Return a stream's name as the command line takes it."""
    return f"{store}:{'/'.join(stream)}"


def only(ended: Finished) -> Any:
    """Return the only verification that a command printed."""
    (found,) = ended.json["verifications"]
    return found


def assert_digests(copy: Copy, server: Standalone, found: Any) -> None:
    """Check the digests and counts of all segments against the stand-alone script."""
    for side, stream in (("source", copy.source), ("target", copy.target)):
        for pair in found["segments"]:
            one = pair[side]
            witness = segment_report(
                *server.segment_store,
                *stream,
                one["segment"],
                start=one["start"],
                end=one["end"],
                origin=one["start"] - (pair["shift"] if side == "target" else 0),
            )
            assert witness["chunks_sha256"] == one["digest"]
            assert (witness["events"], witness["broken_at"]) == (one["events"], one["noEventAt"])


def test_a_copy_of_a_scaled_and_truncated_stream_is_verified(
    copy: Copy, standalone: Standalone, foreign: ForeignClient
) -> None:
    """Source and copy are equal although ids and offsets differ. Digests are the script's.

    Both streams get further events.
    """
    foreign.create(*copy.source, segments=2)
    foreign.write(*copy.source, events=EVENTS, keys=KEYS)
    assert foreign.scale(*copy.source, segments=[0], ranges=[(0.0, 0.2), (0.2, 0.5)])
    foreign.write(*copy.source, events=EVENTS, keys=KEYS, first=EVENTS)
    offsets = {EPOCH | 2: 0, EPOCH | 3: 10 * FRAME, 1: 0}
    foreign.truncate(*copy.source, offsets=offsets)
    copied = run_inline(copy)
    assert copied.outcome is Outcome.COPIED, copied.error
    for stream in (copy.source, copy.target):
        foreign.write(*stream, events=100, keys=KEYS, first=2 * EVENTS)
    stop = foreign.start_writer(*copy.source, rate=500, keys=KEYS, seed=1)
    report = copy.folder / "report.json"
    ended = copy.run("verify", "-o", "json", "--report", str(report))
    stop()
    assert ended.code == 0, ended.err
    assert ended.json == json.loads(report.read_text())
    found = only(ended)
    assert (found["result"], found["pairedBy"], found["differences"]) == ("Equal", "Copy", [])
    assert found["recordedDigest"] == found["source"]["digest"] == copied.digest
    assert found["source"]["events"] == copied.events
    assert sorted(pair["shift"] for pair in found["segments"]) == [-10 * FRAME, 0, 0]
    assert sum(pair["beyond"] for pair in found["segments"]) == 100 * FRAME
    assert_digests(copy, standalone, found)
    exact = copy.run("verify", "--exact")
    assert exact.code == 6
    assert "Extra in segment" in exact.out


@pytest.mark.parametrize(
    "place",
    [
        pytest.param(0, marks=pytest.mark.exhaustive),
        777,
        pytest.param(EVENTS - 1, marks=pytest.mark.exhaustive),
    ],
)
def test_one_event_that_differs_is_located(
    copy: Copy, standalone: Standalone, foreign: ForeignClient, place: int
) -> None:
    """Verification names the segment and the exact byte of one different event."""
    for stream in (copy.source, copy.target):
        foreign.create(*stream, segments=1)
    foreign.write(*copy.source, events=EVENTS)
    if place:
        foreign.write(*copy.target, events=place)
    foreign.write(*copy.target, events=1, first=place, seed=1)  # another seed gives another key
    if place + 1 < EVENTS:
        foreign.write(*copy.target, events=EVENTS - place - 1, first=place + 1)
    streams = [named(copy.source), named(copy.target)]
    ended = copy.run("verify", *streams, "-o", "json")
    assert ended.code == 6
    found = only(ended)
    (different,) = found["differences"]
    assert (different["what"], different["segment"]) == ("Bytes", 0)
    assert different["offset"] == different["targetOffset"] == place * FRAME + 8
    assert found["source"]["events"] == found["target"]["events"] == EVENTS
    assert_digests(copy, standalone, found)
    shown = copy.run("verify", *streams).out
    assert f"Bytes in segment 0 at {place * FRAME + 8:,}" in shown


@pytest.mark.exhaustive
def test_what_the_target_lacks_is_located(copy: Copy, foreign: ForeignClient) -> None:
    """Verification names the segment and the offset from which the target lacks events."""
    for stream in (copy.source, copy.target):
        foreign.create(*stream, segments=2)
        foreign.write(*stream, events=EVENTS, keys=KEYS)
    foreign.write(*copy.source, events=10, seed=3, segments=[1])
    ended = copy.run("verify", named(copy.source), named(copy.target), "-o", "json")
    assert ended.code == 6
    found = only(ended)
    (missing,) = found["differences"]
    assert (missing["what"], missing["segment"]) == ("Missing", 1)
    assert missing["offset"] == found["segments"][1]["end"] - 10 * FRAME
    back = copy.run("verify", named(copy.target), named(copy.source))
    assert back.code == 0, back.err
    assert f"{10 * FRAME:,} bytes of the target are outside of these bounds" in back.out


@pytest.mark.exhaustive
def test_a_range_is_compared_with_its_copy(copy: Copy, foreign: ForeignClient) -> None:
    """A range between two cuts of the Java client, over a scale event, equals its copy."""
    foreign.create(*copy.source, segments=2)
    cuts = []
    for number in range(3):
        foreign.write(*copy.source, events=EVENTS, keys=KEYS, first=number * EVENTS)
        cuts.append(foreign.info(*copy.source).tail)
        assert foreign.scale(*copy.source)
    begin, _, end = cuts
    copy.ranges = [
        {
            "from": {"at": "StreamCut", "streamCut": begin},
            "to": {"at": "StreamCut", "streamCut": end},
        }
    ]
    report = run_inline(copy)
    assert report.outcome is Outcome.COPIED, report.error
    streams = [named(copy.source), named(copy.target)]
    bounds = ["--source-from", begin, "--source-to", end]
    of_copy, of_streams = (
        only(copy.run("verify", *arguments, "-o", "json"))
        for arguments in ([], [*streams, *bounds])
    )
    for found in (of_copy, of_streams):
        assert (found["result"], found["source"]["events"]) == ("Equal", 2 * EVENTS)
    assert of_copy["target"]["digest"] == of_streams["target"]["digest"] == report.digest
    assert copy.run("verify", *streams).code == 6


def test_a_source_that_is_gone_leaves_the_recorded_digest(
    copy: Copy, foreign: ForeignClient
) -> None:
    """Without the source, the target is compared with its record. The result is Incomplete."""
    foreign.create(*copy.source, segments=1)
    foreign.write(*copy.source, events=EVENTS)
    assert run_inline(copy).outcome is Outcome.COPIED
    foreign.delete(*copy.source)
    ended = copy.run("verify", "-o", "json")
    assert ended.code == 6
    found = only(ended)
    assert (found["result"], found["segments"][0]["gone"]) == ("Incomplete", EVENTS * FRAME)
    assert found["target"]["digest"] == found["recordedDigest"]


class Two(Copy):
    """Streams in two stores, one of which requires a login."""

    other: str = ""

    @property
    def file(self) -> Path:
        """A file with only the two stores."""
        path = self.folder / "stores.yaml"
        login = {"auth": {"basic": {"secretRef": {"name": "login"}}}}
        stores = {
            "plain": {"controllerURI": self.uri},
            "guarded": {"controllerURI": self.other, **login},
        }
        path.write_text(
            "\n---\n".join(
                json.dumps(
                    {
                        "apiVersion": "sluice.dev/v1alpha1",
                        "kind": "StreamStore",
                        "metadata": {"name": name},
                        "spec": {"pravega": pravega},
                    }
                )
                for name, pravega in stores.items()
            )
        )
        return path


@pytest.mark.exhaustive
def test_streams_of_two_stores_are_compared(
    tmp_path: Path,
    standalone: Standalone,
    standalone_auth: Standalone,
    scope: str,
    foreign: ForeignClient,
    foreign_for: Callable[..., ForeignClient],
) -> None:
    """Streams of two stores are compared. A user without the right to list segments is told so."""
    owner, reader = standalone_auth.users[:2]
    admin = foreign_for(standalone_auth.controller_uri, owner)
    there = f"guarded-{uuid4().hex[:12]}"
    admin.create_scope(there)
    for client, stream in ((foreign, (scope, "a")), (admin, (there, "b"))):
        client.create(*stream, segments=2)
        client.write(*stream, events=EVENTS, keys=KEYS)
    for user in (owner, reader):
        secret = tmp_path / user.name / "login"
        secret.mkdir(parents=True)
        (secret / "username").write_text(user.name)
        (secret / "password").write_text(user.password)
    two = Two(tmp_path, standalone.controller_uri, (scope, "a"), (there, "b"))
    two.other = standalone_auth.controller_uri
    arguments = [named((scope, "a"), "plain"), named((there, "b"), "guarded")]
    login = ["--credentials-dir", str(tmp_path / owner.name)]
    ended = two.run("verify", *arguments, *login, "-o", "json")
    assert ended.code == 0, ended.err
    assert only(ended)["source"]["events"] == EVENTS
    admin.write(there, "b", events=1, seed=9)
    foreign.write(scope, "a", events=1, seed=8)
    assert two.run("verify", *arguments, *login).code == 6
    refused = two.run("verify", *arguments, "--credentials-dir", str(tmp_path / reader.name))
    assert refused.code == 3
    assert "Grant the user READ_UPDATE" in refused.err
    assert owner.password not in ended.out + ended.err
