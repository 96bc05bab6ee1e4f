"""The commands that list, show, read and write streams, beside the official client."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from sluice.config import Settings
from sluice.core.values.model import StoreAddress, StreamName
from sluice.engine.streams.writing import EventWriter, Routed
from sluice.stores.connect import connect
from support.command import warm

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from localstore import ForeignClient, Standalone
    from sluice.stores.base import Store

KEYS = 16

Command = "Callable[..., subprocess.CompletedProcess[str]]"


@pytest.fixture
def streams(standalone: Standalone) -> Command:
    """Return a function that runs `sluice streams`."""

    def run(*words: str, given: str = "") -> subprocess.CompletedProcess[str]:
        command = [warm.SLUICE, "streams", *words, "--store", standalone.controller_uri]
        return warm.run(command, given=given)

    return run


@pytest.fixture
def store(standalone: Standalone) -> Iterator[Store]:
    """Return a client of the store."""
    found = connect(StoreAddress(uri=standalone.controller_uri), Settings())
    yield found
    found.close()


def lines(text: str) -> list[dict[str, Any]]:
    """Return the JSON objects of a text, one per line."""
    return [json.loads(line) for line in text.splitlines()]


def test_keys_go_where_the_official_client_sends_them(
    streams: Command, scope: str, foreign: ForeignClient, store: Store
) -> None:
    """Sluice chooses the same segment for a key as the Java client."""
    foreign.create(scope, "theirs", segments=7)
    foreign.write(scope, "theirs", events=500, keys=KEYS)
    described = store.describe(StreamName(scope=scope, stream="theirs"))
    assert described is not None
    found = lines(streams("read", f"{scope}/theirs", "-o", "json").stdout)
    assert len(found) == 500
    assert len({one["segmentID"] for one in found}) > 2
    for one in found:
        place = store.place_of(one["event"].partition("|")[0])
        (segment,) = [s for s in described.tail if s.keys.low <= place < s.keys.high]
        assert one["segmentID"] == segment.id


@pytest.mark.exhaustive
def test_the_official_client_reads_what_is_written(
    streams: Command, scope: str, foreign: ForeignClient
) -> None:
    """The official client reads all events of a file once, in a stream that the command made."""
    given = "".join(f"k{number % KEYS}:event {number}\n" for number in range(2500))
    done = streams("write", f"new-{scope}/ours", "-K", ":", "--create", "3", given=given)
    assert (done.returncode, done.stdout) == (0, "")
    assert f"2,500 events were written to new-{scope}/ours." in done.stderr
    assert foreign.read(f"new-{scope}", "ours").events == 2500
    assert len(foreign.info(f"new-{scope}", "ours").segments) == 3
    back = streams("read", f"new-{scope}/ours").stdout.splitlines()
    assert Counter(back) == Counter(f"event {number}" for number in range(2500))
    own = [int(line.removeprefix("event ")) for line in back]
    for key in range(KEYS):
        numbers = [number for number in own if number % KEYS == key]
        assert numbers == sorted(numbers)
    (listed,) = json.loads(streams("ls", f"new-{scope}", "-o", "json").stdout)
    assert (listed["stream"], listed["events"]) == (f"new-{scope}/ours", 2500)


def test_a_range_is_read_from_one_cut_to_another(
    streams: Command, scope: str, foreign: ForeignClient
) -> None:
    """A printed cut is the begin or the end of another read."""
    foreign.create(scope, "ranged", segments=2)
    name = f"{scope}/ranged"
    streams("write", name, "--key", "a", given="one\ntwo\n")
    middle = streams("cut", name).stdout.strip()
    streams("write", name, "--key", "a", given="three\n")
    assert streams("read", name, "--from", middle).stdout == "three\n"
    assert streams("read", name, "--to", middle).stdout == "one\ntwo\n"
    assert streams("read", name, "--limit", "1").stdout == "one\n"
    head = streams("cut", name, "--at", "head").stdout.strip()
    assert streams("read", name, "--from", head, "--to", head).stdout == ""
    shown = json.loads(streams("show", name, "-o", "json").stdout)
    assert (shown["events"], shown["head"]) == (3, head)
    assert sum(one["events"] for one in shown["segmentList"]) == 3


def test_a_writer_follows_a_stream_that_is_scaled(
    scope: str, foreign: ForeignClient, store: Store
) -> None:
    """A writer follows scale events. Each event is there once, in order per key."""
    foreign.create(scope, "scaled", segments=1)
    stream = StreamName(scope=scope, stream="scaled")

    def events() -> Iterator[Routed]:
        for number in range(3000):
            if number == 1500:
                assert foreign.scale(scope, "scaled", ranges=[(0.0, 0.4), (0.4, 1.0)])
            key = f"k{number % KEYS}"
            yield Routed(store.place_of(key), f"{key}|{number // KEYS}|{number}|".encode())

    writer = EventWriter(store, stream)
    writer.write(events())
    assert len(writer.stored) == 3
    read = foreign.read(scope, "scaled")
    assert (read.events, read.duplicates, read.missing, read.out_of_order) == (3000, 0, 0, 0)


def test_bytes_that_are_no_text_are_shown_in_base64(
    streams: Command, scope: str, foreign: ForeignClient, store: Store
) -> None:
    """Bytes that are no UTF-8 text are shown in base64, in a field of their own."""
    foreign.create(scope, "bytes")
    stream = StreamName(scope=scope, stream="bytes")
    EventWriter(store, stream).write([Routed(0.5, b"\xff\x00")])
    (only,) = lines(streams("read", str(stream), "-o", "json").stdout)
    assert only == {"segmentID": 0, "offset": 0, "base64": "/wA="}


@pytest.mark.parametrize(
    ("words", "given", "says"),
    [
        (("write", "none/none", "-K", "", "--create", "1"), "a\n", "--key-delimiter is empty"),
        (("read", "none/none"), "", "there is no stream none/none"),
        (("write", "none/none"), "a\n", "write --create SEGMENTS makes one"),
        (("ls", "none"), "", "sluice streams ls lists the scopes"),
        (("show", "word"), "", "Write SCOPE/STREAM"),
    ],
)
def test_wrong_input_is_named_with_a_remedy(
    streams: Command, words: tuple[str, ...], given: str, says: str
) -> None:
    """Wrong input ends with code 2 and a remedy, and nothing is made."""
    done = streams(*words, given=given)
    assert done.returncode == 2
    assert says in done.stderr


@pytest.mark.exhaustive
def test_a_reader_of_the_output_may_leave(
    standalone: Standalone, streams: Command, scope: str, foreign: ForeignClient
) -> None:
    """The command ends at once and silently if its reader leaves, as `head` does."""
    foreign.create(scope, "much")
    foreign.write(scope, "much", events=20_000)
    command = f"{warm.SLUICE} streams read {scope}/much --store {standalone.controller_uri}"
    piped = f"set -o pipefail; {command} | head -n 1"
    done = subprocess.run(
        ["bash", "-c", piped], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout == streams("read", f"{scope}/much", "--limit", "1").stdout


@pytest.mark.exhaustive
def test_a_store_with_a_login_is_named_in_a_file(
    standalone_auth: Standalone, tmp_path: Path
) -> None:
    """A file names a store with a login by its StreamStore and Secret, whose values are files."""
    user = standalone_auth.users[0]
    secret = tmp_path / "login"
    secret.mkdir()
    (secret / "username").write_text(user.name)
    (secret / "password").write_text(user.password)
    file = tmp_path / "stores.yaml"
    file.write_text(
        "apiVersion: sluice.dev/v1alpha1\nkind: StreamStore\nmetadata: {name: main}\n"
        f"spec: {{pravega: {{controllerURI: '{standalone_auth.controller_uri}',"
        " auth: {basic: {secretRef: {name: login}}}}}\n"
    )
    words = ("-f", str(file), "--credentials-dir", str(tmp_path))
    made = subprocess.run(
        [warm.SLUICE, "streams", "write", "with-login/s", "--create", "1", *words],
        input="one\n",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    read = subprocess.run(
        [warm.SLUICE, "streams", "read", "with-login/s", *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert read.stdout == "one\n"


def test_an_event_that_no_client_could_write_is_refused_with_its_line(
    streams: Command, scope: str, foreign: ForeignClient
) -> None:
    """An event that is too long is refused with its line. Earlier events are stored."""
    foreign.create(scope, "long")
    given = "a\r\n\nlast\n" + "x" * ((8 << 20) + 1) + "\nnever\n"
    done = streams("write", f"{scope}/long", given=given)
    assert done.returncode == 2
    assert "line 4 has more than 8,388,608 bytes" in done.stderr
    assert "The first 3 lines are stored." in done.stderr
    found = lines(streams("read", f"{scope}/long", "-o", "json").stdout)
    assert [one["event"] for one in found] == ["a\r", "", "last"]


@pytest.mark.exhaustive
def test_a_line_without_a_key_ends_the_writing_behind_those_before_it(
    streams: Command, scope: str, foreign: ForeignClient
) -> None:
    """A line without a key ends the writing. The error has the line's number, for the rest."""
    foreign.create(scope, "lines")
    done = streams("write", f"{scope}/lines", "-K", ":", given="a:1\nb:2\nno key\nc:3\n")
    assert done.returncode == 2
    assert "line 3 does not begin with a routing key" in done.stderr
    assert sorted(streams("read", f"{scope}/lines").stdout.split()) == ["1", "2"]


def test_streams_that_a_login_may_not_look_at_are_named(
    standalone_auth: Standalone, tmp_path: Path, foreign_for: Callable[..., ForeignClient]
) -> None:
    """Streams whose segments a login may not see are named."""
    owner, reader = standalone_auth.users[:2]
    admin = foreign_for(standalone_auth.controller_uri, owner)
    admin.create_scope("looked-at")
    admin.create("looked-at", "orders")
    file = tmp_path / "stores.yaml"
    file.write_text(
        "apiVersion: sluice.dev/v1alpha1\nkind: StreamStore\nmetadata: {name: main}\n"
        f"spec: {{pravega: {{controllerURI: '{standalone_auth.controller_uri}',"
        " auth: {basic: {secretRef: {name: login}}}}}\n"
    )
    for user, code, said in ((owner, 0, "open"), (reader, 3, "not permitted")):
        secret = tmp_path / user.name / "login"
        secret.mkdir(parents=True)
        (secret / "username").write_text(user.name)
        (secret / "password").write_text(user.password)
        words = ("ls", "looked-at", "-f", str(file), "--credentials-dir", str(secret.parent))
        done = subprocess.run(
            [warm.SLUICE, "streams", *words],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == code, done.stderr
        assert "orders" in done.stdout
        assert said in done.stdout
