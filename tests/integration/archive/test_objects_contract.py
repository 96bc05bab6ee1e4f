"""The guarantees on which archives rely, of a real S3 gateway and of a directory."""

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from obstore.exceptions import PreconditionError
from obstore.store import S3Store

from s3gateway import Gateway
from sluice.archive.objects.objects import Objects
from sluice.archive.objects.s3 import Bucket, S3Keys, S3Objects
from sluice.config import StoreTimeouts
from sluice.errors import (
    AuthenticationFailed,
    StoreRejected,
    StoreTimeout,
    StoreUnavailable,
)
from support.until import until

# The first test that needs the gateway compiles it.
pytestmark = pytest.mark.timeout(1200)

WRITERS = 24
ROUNDS = 10


def race(act: Callable[[int], object]) -> list[object]:
    """Make a call in each of many threads at once. Return the results, by the thread's number."""
    results: list[object] = [None] * WRITERS
    gate = threading.Barrier(WRITERS)

    def run(number: int) -> None:
        gate.wait()
        results[number] = act(number)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_of_many_that_make_an_object_one_does(new_client: Callable[[], Objects]) -> None:
    """One client makes the object, with its bytes. `put_new` returns False for all others.

    Each writer has a client of its own, as drivers on different machines have.
    """
    clients = [new_client() for _ in range(WRITERS)]
    for number in range(ROUNDS):
        name = f"heads/{number:016x}"
        won = race(lambda i, name=name: clients[i].put_new(name, b"%d" % i * 1000))  # type: ignore[misc]
        assert won.count(True) == 1
        assert won.count(False) == WRITERS - 1
        assert clients[0].get(name) == b"%d" % won.index(True) * 1000


def test_an_object_that_is_made_again_stays_as_it_is(objects: Objects) -> None:
    """`put_new` leaves an existing object as it is, and `put` replaces it."""
    assert objects.put_new("heads/1", b"one")
    assert not objects.put_new("heads/1", b"two")
    assert objects.get("heads/1") == b"one"
    objects.put("heads/1", b"three")
    assert objects.get("heads/1") == b"three"


def test_of_many_that_replace_a_version_one_does(gateway: Gateway, bucket: str) -> None:
    """The gateway obeys If-Match, which archives do not need: one of many writers wins.

    The gateway knows a version by its content. If a writer repeats the present content, others can
    win too.
    """
    store = S3Store(
        bucket,
        config={
            "endpoint": gateway.endpoint,
            "access_key_id": gateway.access,
            "secret_access_key": gateway.secret,
        },
        client_options={"allow_http": True},
    )

    def replace(data: bytes, tag: str | None) -> bool:
        try:
            store.put("it", data, mode={"e_tag": tag})
        except PreconditionError:
            return False
        return True

    tag = store.put("it", b"first")["e_tag"]
    for turn in range(ROUNDS):
        data = [b"%d of %d" % (number, turn) for number in range(WRITERS)]
        won = race(lambda i, data=data, tag=tag: replace(data[i], tag))  # type: ignore[misc]
        assert won.count(True) == 1
        assert bytes(store.get("it").bytes()) == data[won.index(True)]
        tag = store.head("it")["e_tag"]
    assert replace(data[won.index(True)], tag)
    assert replace(b"other", tag)


def test_a_reader_sees_an_object_whole_or_not_at_all(new_client: Callable[[], Objects]) -> None:
    """While an object is replaced, a reader sees the old version or the new one."""
    writer, reader = new_client(), new_client()
    versions = [bytes([number]) * (3 << 20) for number in range(8)]
    seen: set[bytes | None] = set()
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            seen.add(reader.get("data/it"))

    thread = threading.Thread(target=read)
    thread.start()
    for version in versions:
        writer.put("data/it", version)
    done.set()
    thread.join()
    assert seen <= {None, *versions}


def test_names_come_in_their_order(objects: Objects) -> None:
    """A listing has one folder's objects, sorted by whole names, slashes included."""
    names = [f"data/{number:08x}/{segment:016x}" for number in range(3) for segment in (1, 16)]
    names += ["data/a-b", "data/a/b", "data/a.b", "data/a0", "database", "z/data/x", "d"]
    objects.put_many((name, name.encode()) for name in reversed(names))
    listed = list(objects.list("data/"))
    assert [one.name for one in listed] == sorted(one for one in names if one.startswith("data/"))
    assert all(one.size == len(one.name) for one in listed)
    assert [one.name for one in objects.list() if "partial" not in one.name] == sorted(names)
    assert list(objects.list("nothing/")) == []


def test_folders_are_told_without_what_is_in_them(objects: Objects) -> None:
    """`folders` returns the direct subfolders of a folder, in order."""
    assert objects.folders() == ()
    names = ["a/heads/1", "a/data/2", "b.c/x", "b/c/d/e", "it"]
    objects.put_many((name, b"x") for name in names)
    assert [one for one in objects.folders() if "partial" not in one] == ["a/", "b.c/", "b/"]
    assert objects.folders("a/") == ("a/data/", "a/heads/")
    assert objects.folders("b/") == ("b/c/",)
    assert objects.folders("none/") == ()


def test_a_listing_begins_behind_a_name(objects: Objects) -> None:
    """A listing has all names after a given one, even if no object has the given name."""
    names = [f"events/{number // 100:08x}/{number:016x}" for number in range(0, 250, 2)]
    objects.put_many((name, b"") for name in names)
    for after in (
        names[0],
        names[77],
        names[-1],
        "events/00000001",
        "events/",
        "f",
        names[60] + "-",
    ):
        expected = [name for name in names if name > after]
        assert [one.name for one in objects.list("events/", after=after)] == expected


def test_more_names_than_one_answer_has(objects: Objects) -> None:
    """A listing continues after the store's first answer."""
    names = [f"events/{number:016x}" for number in range(2300)]
    objects.put_many((name, b"x") for name in names)
    assert [one.name for one in objects.list("events/")] == names


def test_ranges_are_cut_at_the_end(objects: Objects) -> None:
    """A range has the bytes up to the object's end. For a missing object the result is None."""
    data = bytes(range(256)) * 40
    objects.put("data/it", data)
    for start, end in ((0, 10), (5000, 5001), (10_000, 20_000), (10_240, 10_250), (20_000, 30_000)):
        assert objects.get("data/it", start, end) == data[start:end]
    assert objects.get("data/it", 10_000) == data[10_000:]
    assert objects.get("data/it", 10_300) == b""
    assert objects.get("data/it", 7, 7) == b""
    assert objects.get("data/other") is None
    assert objects.get("data/other", 3, 9) is None
    assert objects.get("data/other", 3, 3) is None
    assert objects.get("data/it/below") is None


def test_many_at_once_keep_their_order(objects: Objects) -> None:
    """Small objects are read side by side, and come in the order of the request."""
    names = [f"events/{number:08x}" for number in range(700)]
    objects.put_many((name, name.encode()) for name in names)
    asked = [*reversed(names), "events/none"]
    assert objects.get_many(asked) == [*(name.encode() for name in reversed(names)), None]


def test_an_empty_object_is_one(objects: Objects) -> None:
    """An object without bytes exists, with size 0."""
    objects.put("data/empty", b"")
    found = objects.look("data/empty")
    assert found is not None
    assert found.size == 0
    assert objects.get("data/empty") == b""
    assert [one.name for one in objects.list("data/")] == ["data/empty"]


def test_buffers_of_all_kinds_are_taken(objects: Objects) -> None:
    """`put` accepts bytes, a bytearray and a memoryview."""
    for data in (b"abc", bytearray(b"abc"), memoryview(b"xabcx")[1:4]):
        objects.put("data/it", data)
        assert objects.get("data/it") == b"abc"


def test_what_is_deleted_is_gone(objects: Objects) -> None:
    """Deleting a missing object succeeds. A deleted name can be used again."""
    names = [f"data/{number:08x}/a" for number in range(5)]
    objects.put_many((name, b"x") for name in names)
    objects.delete([*names[:3], "data/none", "none/none"])
    objects.delete([])
    assert [one.name for one in objects.list("data/")] == names[3:]
    assert objects.look(names[0]) is None
    objects.put(names[0], b"y")
    assert objects.get(names[0]) == b"y"


def test_the_store_tells_when_an_object_was_made(objects: Objects) -> None:
    """An object has the store's time, in milliseconds, in a listing and alone."""
    objects.put("leases/it", b"1")
    first = objects.look("leases/it")
    assert first is not None
    assert [one.modified // 1000 for one in objects.list("leases/")] == [first.modified // 1000]
    assert first.modified > 1_700_000_000_000


def test_a_prefix_keeps_archives_apart(in_bucket: Callable[[str], S3Objects]) -> None:
    """Neither of two prefixes sees the other's objects, even if one begins with the other."""
    one, other = in_bucket("team/a"), in_bucket("team/ab")
    one.put("heads/1", b"a")
    other.put("heads/1", b"ab")
    assert [found.name for found in one.list()] == ["heads/1"]
    assert one.get("heads/1") == b"a"
    assert [found.name for found in in_bucket("").list()] == ["team/a/heads/1", "team/ab/heads/1"]


def s3(gateway: Gateway, bucket: str, **changes: str) -> S3Objects:
    """Return a client of a bucket, with some values changed."""
    values = {"access": gateway.access, "secret": gateway.secret, "endpoint": gateway.endpoint}
    values |= changes
    place = Bucket(name=bucket, endpoint=values["endpoint"])
    keys = S3Keys(access=values["access"], secret=values["secret"])
    return S3Objects(place, keys=keys, timeouts=StoreTimeouts(connect=1, call=2, stall=2))


@pytest.mark.parametrize("what", ["access", "secret"])
def test_wrong_keys_are_told(gateway: Gateway, bucket: str, what: str) -> None:
    """Each call with wrong keys raises AuthenticationFailed, and no message contains a key."""
    objects = s3(gateway, bucket, **{what: "wrong-key"})
    for call in (
        lambda: objects.put("it", b""),
        lambda: objects.put_new("it", b""),
        lambda: objects.get("it"),
        lambda: list(objects.list()),
    ):
        with pytest.raises(AuthenticationFailed) as caught:
            call()
        assert "wrong-key" not in f"{caught.value}{objects!r}"
        assert gateway.secret not in f"{caught.value}{objects!r}"
        assert len(str(caught.value)) < 300


def test_keys_that_are_changed_in_their_files_are_used(
    gateway: Gateway, bucket: str, tmp_path: Path
) -> None:
    """A client uses new keys as soon as their files have them."""
    folder = tmp_path / "keys"
    folder.mkdir()
    (folder / "accessKeyId").write_text(gateway.access)
    (folder / "secretAccessKey").write_text("of before")
    place = Bucket(name=bucket, endpoint=gateway.endpoint)
    objects = S3Objects(place, keys=S3Keys.read("keys", tmp_path), timeouts=StoreTimeouts())
    with pytest.raises(AuthenticationFailed):
        objects.put("it", b"1")
    (folder / "secretAccessKey").write_text(gateway.secret)

    def put() -> bool:
        with suppress(AuthenticationFailed):
            objects.put("it", b"1")
            return True
        return False

    until("the new keys are used", put)
    assert objects.get("it") == b"1"
    (folder / "secretAccessKey").unlink()  # as for a moment while a Secret is mounted anew
    assert objects.get("it") == b"1"


def test_a_bucket_that_is_not_there_is_told(gateway: Gateway) -> None:
    """A missing bucket is an error with a remedy, not an archive without objects."""
    objects = s3(gateway, "no-such-bucket")
    for call in (
        lambda: objects.put("it", b""),
        lambda: objects.get("it"),
        lambda: list(objects.list()),
    ):
        with pytest.raises(StoreRejected, match="NoSuchBucket") as caught:
            call()
        assert "Make the bucket" in caught.value.remedy


def test_a_store_that_is_away_is_told(bucket: str, gateway: Gateway) -> None:
    """A refused connection is StoreUnavailable, which is retryable, and names the address."""
    objects = s3(gateway, bucket, endpoint="http://127.0.0.1:9")
    with pytest.raises(StoreUnavailable, match="refused") as caught:
        objects.get("it")
    assert caught.value.retryable
    assert "127.0.0.1:9" in str(caught.value)


def test_a_store_that_is_silent_is_given_up(
    bucket: str, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call to a server that never answers ends at its deadline."""
    monkeypatch.setattr("sluice.archive.objects.s3._LARGEST", 0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        objects = s3(gateway, bucket, endpoint=f"http://127.0.0.1:{server.getsockname()[1]}")
        with pytest.raises(StoreTimeout):
            objects.put("it", b"x" * 1000)


def test_objects_outlive_the_gateway() -> None:
    """Objects are still there after the gateway is killed and started again."""
    with Gateway() as gateway:
        bucket = gateway.make_bucket("bucket")
        s3(gateway, bucket).put("heads/1", b"one")
        gateway.kill()
        with pytest.raises(StoreUnavailable):
            s3(gateway, bucket).get("heads/1")
        gateway.start()
        assert s3(gateway, bucket).get("heads/1") == b"one"
