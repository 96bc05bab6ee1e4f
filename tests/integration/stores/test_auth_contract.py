"""The answers of a store with logins: to clients without one, to strangers, readers and writers."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from localstore import Standalone
from sluice.config import Settings, StoreTimeouts
from sluice.core.values.model import SegmentInfo, StoreAddress, StreamConfig, StreamName
from sluice.errors import AuthenticationFailed, PermissionDenied, StoreUnavailable
from sluice.stores.connect import connect
from sluice.stores.credentials import Credentials
from sluice.stores.pravega.names import TokenAccess
from sluice.stores.pravega.segments import tail_links
from sluice.stores.pravega.store import PravegaStore
from sluice.stores.writing import CompareAndSet
from support.store.following import Heard
from support.wire.tokens import living_for

MIB = 1 << 20
Client = Callable[[Credentials | None], PravegaStore]


@pytest.fixture(scope="module")
def client(standalone_auth: Standalone) -> Iterator[Client]:
    """Yield a function that makes clients. They are closed at the end."""
    with ExitStack() as stack:

        def make(credentials: Credentials | None) -> PravegaStore:
            store = PravegaStore(
                standalone_auth.controller_uri, credentials=credentials, timeouts=StoreTimeouts()
            )
            stack.callback(store.close)
            return store

        yield make


@pytest.fixture(scope="module")
def passwords(standalone_auth: Standalone) -> dict[str, str]:
    """Return the passwords of the server's users, by name."""
    return {user.name: user.password for user in standalone_auth.users}


@pytest.fixture(scope="module")
def admin(client: Client, passwords: dict[str, str]) -> PravegaStore:
    """Return a client of the user with all rights."""
    return client(Credentials("admin", passwords["admin"]))


@pytest.fixture(scope="module")
def reader(client: Client, passwords: dict[str, str]) -> PravegaStore:
    """Return a client of the user with the right to read."""
    return client(Credentials("reader", passwords["reader"]))


@pytest.fixture(scope="module")
def stream(admin: PravegaStore) -> StreamName:
    """Return a stream with three bytes in its only segment."""
    name = StreamName(scope="auth-contract", stream="s")
    admin.create_scope(name.scope)
    admin.create_stream(name, StreamConfig())
    assert admin.append_at(admin.segment_name(name, 0), 0, b"abc")
    return name


@pytest.mark.exhaustive
def test_a_copy_of_bytes_works_with_tokens(admin: PravegaStore, stream: StreamName) -> None:
    """A token for the stream allows each call that a copy makes on segments."""
    segment, staging = admin.segment_name(stream, 0), admin.staging_name(stream, 0, uuid4().hex)
    (before,) = admin.infos([segment])
    assert before is not None
    assert admin.create(staging)
    assert admin.append_at(staging, 0, b"de")
    with admin.appender(staging, writer=uuid4(), window=MIB) as appender:
        appender.append(b"f", event_number=1)
        appender.flush()
    assert admin.set_attribute(staging, CompareAndSet(uuid4(), None, 1))
    admin.seal(staging)
    admin.merge(segment, staging, CompareAndSet(uuid4(), None, 1))
    assert not admin.delete(staging)
    blocks = admin.read(segment, before.length, before.length + 3)
    assert b"".join(bytes(block.data) for block in blocks) == b"def"


def test_a_reader_may_look_and_not_touch(
    admin: PravegaStore, reader: PravegaStore, stream: StreamName
) -> None:
    """A user with the right to read sees bytes and attributes, and cannot change them."""
    segment, staging = admin.segment_name(stream, 0), admin.staging_name(stream, 0, uuid4().hex)
    assert reader.infos([segment, staging]) == [*admin.infos([segment]), None]
    assert b"".join(bytes(block.data) for block in reader.read(segment, 0, 3)) == b"abc"
    asked = [(segment, admin.creation_time)]
    assert reader.attributes(asked) == admin.attributes(asked)
    condition = CompareAndSet(uuid4(), None, 1)
    attempts: list[Callable[[], object]] = [
        lambda: reader.create(staging),
        lambda: reader.seal(segment),
        lambda: reader.delete(segment),
        lambda: reader.set_attribute(segment, condition),
        lambda: reader.merge(segment, staging, condition),
        lambda: reader.append_at(segment, 0, b"x"),
        lambda: reader.appender(segment, writer=uuid4(), window=MIB).__enter__(),
        lambda: reader.seal_stream(stream),
        lambda: reader.create_stream(stream, StreamConfig()),
    ]
    for attempt in attempts:
        with pytest.raises(PermissionDenied, match=str(stream)):
            attempt()


def test_listing_segments_takes_more_than_the_right_to_read(
    reader: PravegaStore, stream: StreamName
) -> None:
    """The controller tells a stream's segments only to users who may also write to it."""
    with pytest.raises(PermissionDenied, match=str(stream)):
        reader.describe(stream)


def test_a_token_to_read_does_not_append(
    client: Client, passwords: dict[str, str], stream: StreamName
) -> None:
    """A token that the segment store refuses again after a renewal is a missing permission."""
    store = client(Credentials("reader", passwords["reader"]))
    segment = store.segment_name(stream, 0)
    token = store._directory.token(segment, TokenAccess.READ)
    store._directory.token = lambda *_: token  # type: ignore[method-assign]
    with pytest.raises(PermissionDenied, match=segment):
        store.append_at(segment, 0, b"x")
    with (
        pytest.raises(PermissionDenied, match=segment),
        store.appender(segment, writer=uuid4(), window=MIB),
    ):
        pass


def test_a_token_refused_is_renewed_once(
    client: Client, passwords: dict[str, str], stream: StreamName
) -> None:
    """A client silently replaces a token that the store no longer accepts."""
    store = client(Credentials("admin", passwords["admin"]))
    segment = store.segment_name(stream, 0)
    for access in TokenAccess:
        good = store._directory.token(segment, access)
        store._directory._tokens[stream, access] = good._replace(text=good.text[:-9] + "tampered!")
    assert isinstance(store.infos([segment])[0], SegmentInfo)
    assert store.set_attribute(segment, CompareAndSet(uuid4(), None, 1))
    for access in TokenAccess:
        good = store._directory.token(segment, access)
        store._directory._tokens[stream, access] = good._replace(text="")
    assert b"".join(bytes(block.data) for block in store.read(segment, 0, 3)) == b"abc"
    with store.appender(segment, writer=uuid4(), window=MIB) as appender:
        assert appender.last is None


def test_a_password_that_is_changed_is_read_again(
    client: Client, passwords: dict[str, str], tmp_path: Path
) -> None:
    """After a refusal, a call is repeated once if the password's file has changed."""
    folder = tmp_path / "login"
    folder.mkdir()
    (folder / "username").write_text("admin")
    (folder / "password").write_text("of yesterday")
    store = client(Credentials.read("login", tmp_path))
    with pytest.raises(AuthenticationFailed):
        store.scope_exists("any")
    (folder / "password").write_text(passwords["admin"])
    assert not store.scope_exists("any")


def test_an_appender_outlives_its_token(
    client: Client, passwords: dict[str, str], stream: StreamName
) -> None:
    """Before its token expires, an appender goes on with a new one over a new connection."""
    store = client(Credentials("admin", passwords["admin"]))
    staging = store.staging_name(stream, 0, uuid4().hex)
    store.create(staging)
    token = store._directory.token(staging, TokenAccess.READ_WRITE)
    store._directory._tokens[stream, TokenAccess.READ_WRITE] = token._replace(
        until=token.until - 538
    )
    with store.appender(staging, writer=uuid4(), window=MIB) as appender:
        for number in range(5):
            appender._open = appender._open._replace(until=0)
            appender.append(b"x", event_number=number)
        appender.flush()
        assert appender.acknowledged == 4
    assert store.infos([staging]) == [SegmentInfo(start=0, length=5, sealed=False)]


@pytest.mark.exhaustive
def test_tokens_of_a_short_life_serve_an_appender_for_most_of_it(
    client: Client, passwords: dict[str, str], stream: StreamName
) -> None:
    """Short-lived tokens serve an appender for most of their life. The test signs them itself."""
    store = client(Credentials("admin", passwords["admin"]))
    staging = store.staging_name(stream, 0, uuid4().hex)
    store.create(staging)
    directory = store._directory
    made: list[str] = []
    ask = directory.run

    def run(call: Callable[..., Any]) -> Any:
        outcome = ask(call)
        if isinstance(outcome, str):
            outcome = living_for(outcome, 8)
            made.append(outcome)
        return outcome

    directory.run = run  # type: ignore[method-assign]
    directory._tokens.clear()
    sent = 0
    with store.appender(staging, writer=uuid4(), window=MIB) as appender:
        while len(made) < 3:
            sent += 1
            appender.append(b"x", event_number=sent)
            appender.flush()
    assert sent > 100 * len(made)
    assert store.infos([staging]) == [SegmentInfo(start=0, length=sent, sealed=False)]
    directory._tokens = {
        key: token._replace(text=living_for(token.text, -30))
        for key, token in directory._tokens.items()
    }
    with (
        pytest.raises(StoreUnavailable),  # the store gives no reason
        store.appender(staging, writer=uuid4(), window=MIB),
    ):
        pass
    with store.appender(staging, writer=uuid4(), window=MIB) as appender:
        appender.append(b"x", event_number=1)
        appender.flush()


def test_a_segment_is_followed_by_who_may_read_it(
    admin: PravegaStore, reader: PravegaStore, stream: StreamName
) -> None:
    """A reader follows a segment. A token refused midway is replaced without loss or repetition."""
    segment, data = admin.segment_name(stream, 0), b"one two "
    (info,) = admin.infos([segment])
    assert info is not None
    with pytest.MonkeyPatch.context() as patch, reader.tails(most=MIB) as tails:
        patch.setattr(tail_links, "_CALM", 0.0)
        heard = Heard(tails, {segment: info.length})
        assert tails.take(1) == []
        good = reader._directory.token(segment, TokenAccess.READ)
        tampered = good._replace(text=good.text[:-9] + "tampered!")
        reader._directory._tokens[stream, TokenAccess.READ] = tampered
        for at in range(0, len(data), 4):
            assert admin.append_at(segment, info.length + at, data[at : at + 4])
            heard.until(partial(heard.has, at + 4))
        assert heard.broken == []
        assert bytes(heard.data[segment]) == data
        assert reader._directory.token(segment, TokenAccess.READ) != tampered


@pytest.mark.parametrize("credentials", [None, Credentials("admin", "w"), Credentials("x", "y")])
def test_nobody_and_strangers_are_told_apart_from_users(
    client: Client, credentials: Credentials | None
) -> None:
    """Calls fail without credentials, with a wrong password and as an unknown user."""
    store = client(credentials)
    with pytest.raises(AuthenticationFailed):
        store.scope_exists("any")
    with pytest.raises(AuthenticationFailed):
        store.infos(["any/s/0.#epoch.0"])


def test_a_segment_store_that_asks_for_a_token_is_an_authentication_error(
    client: Client, admin: PravegaStore, stream: StreamName
) -> None:
    """Without credentials there is no token to renew, and the error says what to configure."""
    store = client(None)
    segment = admin.segment_name(stream, 0)
    store._directory.owners = admin._directory.owners  # type: ignore[method-assign]
    with pytest.raises(AuthenticationFailed, match=segment) as caught:
        store.infos([segment])
    assert "Secret" in caught.value.remedy


def test_credentials_come_from_the_folder_and_never_show(
    standalone_auth: Standalone, passwords: dict[str, str], tmp_path: Path
) -> None:
    """`connect` reads the mounted Secret. No repr and no error contains a password."""
    (tmp_path / "login").mkdir()
    (tmp_path / "login" / "username").write_text("admin")
    (tmp_path / "login" / "password").write_text("no such password\n")
    address = StoreAddress(uri=standalone_auth.controller_uri, secret="login")  # noqa: S106
    store = connect(address, Settings(credentials_dir=tmp_path))
    with pytest.raises(AuthenticationFailed) as caught:
        store.scope_exists("any")
    assert "no such password" not in f"{caught.value!r} {caught.value} {store!r}"
    store.close()
    (tmp_path / "login" / "password").write_text(passwords["admin"] + "\n")
    store = connect(address, Settings(credentials_dir=tmp_path))
    assert not store.scope_exists("any")
    store.close()
