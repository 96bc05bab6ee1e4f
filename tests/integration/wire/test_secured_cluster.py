"""Copies in a Pravega of four processes with TLS and logins, whose tokens live for 20 s.

Pravega's controller reads its accounts only at its start. So a password changes in one of two ways:
a restart of the controller, or a second account for a while.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Final

import pytest

from localstore import Cluster, ForeignClient, User
from localstore.accounts import ADMIN
from sluice.config import Settings
from sluice.engine.copy.report import Outcome
from sluice.engine.tasks.limits import Limits
from sluice.stores.pravega.controller.directory import Directory
from support.command.sluice_command import finish
from support.store.inline import run_copies
from support.until import PATIENT, until
from support.wire.secured import LOGIN, SecuredCopy, SecuredFollowing, mount, segments_of
from support.witness.foreign_witness import assert_alike

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

pytestmark = [pytest.mark.cluster, pytest.mark.exhaustive, pytest.mark.timeout(900)]

EVENTS, SIZE = 20_000, 500
ALL: Final = "prn::*,READ_UPDATE"
OLD: Final = User("mover", "0ld-marked-pass", ALL)
NEW: Final = User("mover", "n3w-marked-pass", ALL)
OTHER: Final = User("other", "0ther-marked-pass", ALL)

TOKEN_SECONDS: Final = 20
LATE: Final = 5.0
"""Seconds until a changed Secret reaches the files of a process, or for which both are valid."""


@pytest.fixture(scope="module")
def server(announce: Callable[[str], AbstractContextManager[None]]) -> Iterator[Cluster]:
    """Yield the store."""
    made = Cluster(users=[ADMIN, OLD, OTHER], tls=True, token_seconds=TOKEN_SECONDS)
    with announce("a Pravega cluster with TLS and logins"):
        made.start()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def witness(server: Cluster) -> Iterator[ForeignClient]:
    """Yield the store's own client, with an account of its own."""
    with ForeignClient(server.controller_uri, user=ADMIN, bundle=server.bundle) as client:
        client.create("secured", "source", segments=3)
        client.write("secured", "source", events=EVENTS, size=SIZE, keys=50)
        yield client


def assert_same(
    server: Cluster, witness: ForeignClient, copy: SecuredCopy | SecuredFollowing
) -> int:
    """Check that both streams have the same bytes and ordered events. Return their number."""
    assert_alike(
        segments_of(server, witness, copy.source), segments_of(server, witness, copy.target)
    )
    source, target = witness.read(*copy.source), witness.read(*copy.target)
    assert target.clean, target
    assert (target.events, target.digest) == (source.events, source.digest)
    return target.events


def test_a_copy_outlives_nine_tokens_of_the_store(
    server: Cluster, witness: ForeignClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy of three minutes renews its token each time before the old one expires."""
    witness.create_scope("tokens")
    copy = SecuredCopy(tmp_path, server.controller_uri, ("secured", "source"), ("tokens", "target"))
    mount(copy, OLD, server.bundle.read_text())
    made: list[float] = []
    ask = Directory.run

    def run(directory: Directory, call: Any) -> Any:
        outcome = ask(directory, call)
        if isinstance(outcome, str):
            made.append(time.monotonic())
        return outcome

    monkeypatch.setattr(Directory, "run", run)
    settings = Settings(timeouts=PATIENT, credentials_dir=copy.folder / "credentials")
    rate = 2 * EVENTS * SIZE // 180  # each byte is read twice: for the copy and for the comparison
    (report,) = run_copies(
        copy.file.read_text(), settings=settings, limits=Limits(bytes_per_second=rate)
    )
    assert report.outcome is Outcome.COPIED, report.error
    assert made[-1] - made[0] > 7 * TOKEN_SECONDS, "it has used no token for long enough"
    assert assert_same(server, witness, copy) == EVENTS


@pytest.mark.parametrize("account", ["the same", "another"])
def test_a_password_changes_while_a_driver_and_a_follower_run(
    server: Cluster, witness: ForeignClient, tmp_path: Path, account: str
) -> None:
    """Both processes go on and succeed. Their output contains no password."""
    server.admit([ADMIN, OLD, OTHER])
    server.restart("controller")
    scope = f"rotated-{account.replace(' ', '-')}"
    witness.create(scope, "live", segments=2)
    witness.write(scope, "live", events=1000, size=SIZE, keys=8)
    new = NEW if account == "the same" else OTHER
    files = []
    for kind, source, target in (
        (SecuredCopy, ("secured", "source"), (scope, "copy")),
        (SecuredFollowing, (scope, "live"), (scope, "followed")),
    ):
        folder = tmp_path / target[1]
        folder.mkdir()
        made = kind(folder, server.controller_uri, source, target)
        mount(made, OLD, server.bundle.read_text())
        files.append(made)
    copy, live = files
    assert isinstance(live, SecuredFollowing)
    copy.limits = {"bytesPerSecond": 400_000}
    with live.following("-o", "json") as follower, copy.running("run", "-o", "json") as driver:
        until("bytes are staged", lambda: "copy" in (witness.streams(scope) or ()))
        if account == "the same":
            server.admit([ADMIN, NEW])
            server.restart("controller")
            threading.Event().wait(LATE)  # as late as a kubelet
            for one in files:
                mount(one, new, server.bundle.read_text())
        else:
            for one in files:
                mount(one, new, server.bundle.read_text())
            threading.Event().wait(LATE)  # both accounts are valid
            server.admit([ADMIN, OTHER])
            server.restart("controller")
        witness.write(scope, "live", events=1000, size=SIZE, keys=8, first=1000)
        assert driver.poll() is None, "the copy was over before the password changed"
        ended = finish(driver, 400)
        until("all is followed", lambda: witness.visible(scope, "followed").events == 2000)
        live.ends = {"cutover": "SealAndDrain"}
        cutover = live.run("run", "-o", "json")
        assert cutover.code == 0, cutover.err
        assert follower.ended().code == 0, follower.said
    assert ended.code == 0, ended.err
    assert assert_same(server, witness, copy) == EVENTS
    assert assert_same(server, witness, live) == 2000
    for text in (ended.out, ended.err, follower.said, cutover.err):
        assert not [one for one in (OLD, NEW, OTHER) if one.password in text]
    assert (copy.folder / "credentials" / LOGIN / "password").read_text() == new.password
