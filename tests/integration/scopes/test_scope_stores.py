"""The selection of streams in copies of scopes between two stores with logins."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import pytest

from localstore import Standalone, User
from sluice.core.claims.claim import Claim, Claimant
from sluice.engine.claims import claims
from sluice.pipelines.programs.stores import Stores
from support.command.scope_command import ScopeCopy, selectors
from support.store.inline import SETTINGS
from support.store.scopes import STREAMS, assert_equal, fill, seen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from localstore import ForeignClient
    from support.command.sluice_command import Finished

KEEPER: Final = User("keeper", "3333_cccc", "prn::*,READ_UPDATE")
EXPORTER: Final = User("exporter", "4444_dddd", "prn::*,READ_UPDATE")
HERE: Final = {f"orders-{number}" for number in range(6)} | {
    *(f"clicks-{number}" for number in range(2)),
    *("audit-1", "event-0", "event-1", "payments-2"),
}
OWNED: Final = "state"
PREFIX: Final = "tmp-"


@pytest.fixture(scope="module")
def guarded() -> Iterator[Standalone]:
    """Yield a store that knows other users than the second one."""
    server = Standalone(users=[KEEPER, EXPORTER], heap="1g")
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def keeper(guarded: Standalone, foreign_for: Callable[..., ForeignClient]) -> ForeignClient:
    """Return the Java client in that store."""
    return foreign_for(guarded.controller_uri, KEEPER)


@pytest.fixture(scope="module")
def admin(standalone_auth: Standalone, foreign_for: Callable[..., ForeignClient]) -> ForeignClient:
    """Return the Java client in the second store, as its administrator."""
    return foreign_for(standalone_auth.controller_uri, standalone_auth.users[0])


@pytest.fixture(scope="module")
def scope(keeper: ForeignClient) -> str:
    """Return a scope of 12 streams, a key-value table and a reader group."""
    name = f"shop-{uuid4().hex[:8]}"
    fill(keeper, name, [sketch for sketch in STREAMS if sketch.name in HERE])
    keeper.create_table(name, "prices")
    keeper.create_group(name, "billing", "orders-0")
    return name


@pytest.fixture
def copy(tmp_path: Path, guarded: Standalone, standalone_auth: Standalone, scope: str) -> ScopeCopy:
    """Return a copy of that scope to the second store."""
    users = (EXPORTER, standalone_auth.users[0])
    target = f"copy-{uuid4().hex[:8]}"
    uri, to = guarded.controller_uri, standalone_auth.controller_uri
    made = ScopeCopy(tmp_path, uri, scope, target, to, users=users)
    made.spec["target"] = {"scopePolicy": "CreateIfAbsent"}
    return made


@pytest.fixture
def ephemeral(copy: ScopeCopy, keeper: ForeignClient) -> Iterator[None]:
    """Yield the scope streams that EphemeralStreams own: one by name, one under a prefix."""
    claimant = Claimant(
        cluster="tests",
        namespace="team",
        name="app",
        uid=str(uuid4()),
        created=round(time.time() * 1000),
    )
    one = Claim(claimant=claimant, scope=copy.source, stream=OWNED)
    under = replace(one, claimant=replace(claimant, uid=str(uuid4())), stream=None, prefix=PREFIX)
    folder = copy.folder / "credentials"
    assert copy.login == ["--credentials-dir", str(folder)]
    with Stores(replace(SETTINGS, credentials_dir=folder)) as stores:
        store = stores[copy.job.sources[0]]
        for claim in (one, under):
            claims.make(claim, store, round(time.time() * 1000))
        keeper.create(copy.source, f"{PREFIX}1")
        yield
        for claim in (one, under):
            claims.release(claim, store, delete=True)
    for name in {OWNED, f"{PREFIX}1"} & set(keeper.streams(copy.source) or ()):
        keeper.delete(copy.source, name)


def only(finished: Finished) -> dict[str, Any]:
    """Return the entry of the file's only copy in a command's JSON."""
    assert finished.code == 0, finished.err
    (found,) = finished.json
    assert isinstance(found, dict)
    return found


@pytest.mark.exhaustive
def test_what_is_selected_of_a_scope_is_copied_to_another_store(
    copy: ScopeCopy,
    guarded: Standalone,
    standalone_auth: Standalone,
    keeper: ForeignClient,
    admin: ForeignClient,
    ephemeral: None,
) -> None:
    """Names, prefixes and tags select streams. Excluded, internal and ephemeral ones stay out.

    The stores have different users. The output names a key-value table as not copied.
    """
    assert ephemeral is None
    copy.spec["streams"] = {
        "include": selectors(
            Exact=["event-1", "payments-2"], Prefix=["orders-", OWNED, PREFIX], Tag=["team=web"]
        ),
        "exclude": selectors(Exact=["orders-5"], Prefix=["clicks-1"], Tag=["pii-no-stream-has-it"]),
    }
    expected = HERE - {"audit-1", "event-0", "orders-5", "clicks-1"}
    ended = copy.run("run", "-o", "json", *copy.login)
    report = only(ended)
    assert {one["stream"] for one in report["streams"]} == expected
    left = {one["why"]: one["streams"] for one in report["leftOut"]}
    assert left["NotSelected"] == ["audit-1", "clicks-1", "event-0", "orders-5"]
    assert left["Ephemeral"] == [OWNED, f"{PREFIX}1"]
    assert "_RGbilling" in left["Internal"]
    assert report["keyValueTables"] == ["prices"]
    assert "prices" in ended.err
    source = seen(guarded.segment_store, keeper, copy.source, expected, login=True)
    assert_equal(source, seen(standalone_auth.segment_store, admin, copy.target, login=True))
    for name in ("orders-4", "event-1"):
        first, second = keeper.read(copy.source, name), admin.read(copy.target, name)
        assert (second.events, second.digest) == (first.events, first.digest)
    assert not {user.password for user in copy.users or ()} & set((ended.out + ended.err).split())


@pytest.mark.exhaustive
def test_internal_and_ephemeral_streams_are_copied_only_if_they_are_asked_for(
    copy: ScopeCopy, ephemeral: None
) -> None:
    """A name that begins with _, or includeEphemeral, selects them.

    Sluice's marks never go along.
    """
    assert ephemeral is None
    chosen = {"include": selectors(Prefix=["_", OWNED, PREFIX]), "includeEphemeral": True}
    copy.spec["streams"] = chosen
    planned = only(copy.run("plan", "-o", "json", *copy.login))
    names = {one["stream"] for one in planned["streams"]}
    assert {OWNED, f"{PREFIX}1", "_RGbilling"} <= names
    assert not [name for name in names if name.startswith("_sluice")]


@pytest.mark.exhaustive
def test_a_user_that_the_store_does_not_know_is_said(copy: ScopeCopy, admin: ForeignClient) -> None:
    """An unknown user ends the run with the code for a store's failure. No scope is made."""
    assert copy.users is not None
    copy.users = (replace(copy.users[0], password="not-this-one"), copy.users[1])  # noqa: S106
    ended = copy.run("run", "-o", "json", "--patience", "1", *copy.login)
    assert ended.code == 3
    (found,) = ended.json
    assert found["error"]["reason"] == "AuthenticationFailed"
    assert admin.streams(copy.target) is None
