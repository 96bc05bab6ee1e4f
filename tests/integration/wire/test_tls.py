"""Copies in a store with TLS and logins. The Java client and a script check them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from localstore import ForeignClient, Standalone
from localstore.accounts import ADMIN, READER
from localstore.certificates import Authority
from sluice.config import Settings
from sluice.engine.copy.report import Outcome
from sluice.engine.tasks.limits import Limits
from sluice.stores.pravega.controller.directory import Directory
from support.search import few
from support.store.inline import run_copies
from support.until import PATIENT, until
from support.wire.secured import SecuredCopy, SecuredFollowing, mount, segments_of
from support.wire.tokens import living_for
from support.witness.foreign_witness import assert_alike

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

EVENTS = 20_000
SIZE = 500
STREAM = "source"


@pytest.fixture(scope="module")
def server(announce: Callable[[str], AbstractContextManager[None]]) -> Iterator[Standalone]:
    """Yield a server that speaks TLS only, and requires a login."""
    made = Standalone(users=[ADMIN, READER], tls=True, heap="2g")
    with announce("Pravega standalone with TLS and authentication"):
        made.start()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def witness(server: Standalone) -> Iterator[ForeignClient]:
    """Yield the store's own client, which trusts the server's authority."""
    with ForeignClient(server.controller_uri, user=ADMIN, bundle=server.bundle) as client:
        client.create("tls", STREAM, segments=3)
        client.write("tls", STREAM, events=EVENTS, size=SIZE, keys=50)
        yield client


@pytest.fixture
def copy(
    tmp_path: Path, server: Standalone, witness: ForeignClient, request: pytest.FixtureRequest
) -> SecuredCopy:
    """Return a copy of the source into a scope of its own, with login and certificates."""
    scope = f"{request.node.name.partition('[')[0].replace('_', '-')[-60:]}-{time.time_ns()}"
    witness.create_scope(scope)
    made = SecuredCopy(tmp_path, server.controller_uri, ("tls", STREAM), (scope, "target"))
    made.environment["SLUICE_STORE_TIMEOUT"] = "8"
    mount(made, ADMIN, server.bundle.read_text())
    return made


def assert_copied(server: Standalone, witness: ForeignClient, copy: SecuredCopy) -> None:
    """Check that the target has the source's bytes, and its events in order."""
    expected = segments_of(server, witness, copy.source)
    assert sum(report["events"] for report in expected) == EVENTS
    assert_alike(expected, segments_of(server, witness, copy.target))
    source, target = witness.read(*copy.source), witness.read(*copy.target)
    assert target.clean
    assert (target.events, target.digest) == (EVENTS, source.digest)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "by",
    [
        "threads",
        "spark",
        "system",
    ],
)
def test_a_copy_over_tls_has_the_bytes_of_its_source(
    server: Standalone, witness: ForeignClient, copy: SecuredCopy, by: str
) -> None:
    """Copies over TLS are exact: in threads, in Spark, and with the system's certificates."""
    if by == "spark":
        copy.environment["SLUICE_SPARK_BYTES"] = "1"
    if by == "system":
        copy.tls = ""
        copy.environment["SSL_CERT_FILE"] = str(server.bundle)
    ended = copy.run("run", "-o", "json")
    assert ended.code == 0, ended.err
    assert ended.json[0]["outcome"] == "Copied"
    assert_copied(server, witness, copy)
    assert ADMIN.password not in ended.out + ended.err


@pytest.mark.exhaustive
def test_a_live_source_is_followed_over_tls(
    tmp_path: Path, server: Standalone, witness: ForeignClient
) -> None:
    """A live source is followed over TLS up to its cutover."""
    witness.create("followed", "source", segments=2)
    witness.write("followed", "source", events=1000, keys=8)
    copy = SecuredFollowing(
        tmp_path, server.controller_uri, ("followed", "source"), ("followed", "target")
    )
    mount(copy, ADMIN, server.bundle.read_text())
    with copy.following("-o", "json") as process:
        witness.write("followed", "source", events=4000, size=2000, keys=8, first=1000)
        until(
            "the target has all",
            lambda: witness.visible("followed", "target").events == 5000,
        )
        copy.ends = {"cutover": "SealAndDrain"}
        ended = copy.run("run", "-o", "json")
        assert ended.code == 0, ended.err
        assert process.ended().code == 0, process.said
    source, target = witness.read(*copy.source), witness.read(*copy.target)
    assert target.clean
    assert (target.events, target.digest) == (5000, source.digest)
    assert_alike(
        segments_of(server, witness, copy.source), segments_of(server, witness, copy.target)
    )


WRONG = {
    "authority": (3, "CertificateRejected", "spec.pravega.tls.caBundleRef"),
    "system": (3, "CertificateRejected", "spec.pravega.tls.caBundleRef"),
    "name": (3, "CertificateRejected", "spec.pravega.tls.serverName"),
    "garbage": (2, "InvalidSpec", "spec.pravega.tls.caBundleRef"),
    "plain": (3, "ProtocolError", "spec.pravega.controllerURI"),
    "tls": (3, "ProtocolError", "spec.pravega.controllerURI"),
    "missing": (3, "AuthenticationFailed", "_trust"),
}
"""The exit code, the reason, and a part of the text, by what is wrong."""


@pytest.mark.parametrize("what", few(WRONG, ["authority", "name", "plain", "missing"]))
def test_what_is_wrong_is_said_and_nothing_is_made(
    server: Standalone,
    standalone: Standalone,
    witness: ForeignClient,
    copy: SecuredCopy,
    what: str,
) -> None:
    """The message about a wrong TLS setting names its field, and no password. Nothing is made."""
    code, reason, field = WRONG[what]
    bundle = copy.folder / "credentials" / "_trust" / "ca.crt"
    if what == "authority":
        bundle.write_text(Authority(copy.folder, "other").bundle.read_text())
    elif what == "system":
        copy.tls = ""
    elif what == "name":
        copy.tls = "{caBundleRef: {name: trust}, serverName: store.example}"
    elif what == "garbage":
        bundle.write_text("no certificate")
    elif what == "plain":
        copy.uri, copy.tls = server.controller_uri.replace("tls:", "tcp:"), ""
    elif what == "tls":
        copy.uri = standalone.controller_uri.replace("tcp:", "tls:")
    else:
        bundle.unlink()
    ended = copy.run("run")
    assert ended.code == code, ended.err
    assert reason in ended.err
    assert field in ended.err
    assert ADMIN.password not in ended.out + ended.err
    assert "ssl_transport_security" not in ended.err, "the library's own words"
    assert witness.streams(copy.target[0]) == []


@pytest.mark.exhaustive
def test_a_copy_outlives_its_tokens(
    server: Standalone,
    witness: ForeignClient,
    copy: SecuredCopy,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Standalone's own tokens live for ten minutes, so the life of each is cut to 6 s here."""
    made: list[str] = []
    ask = Directory.run

    def run(directory: Directory, call: Any) -> Any:
        outcome = ask(directory, call)
        if isinstance(outcome, str):
            outcome = living_for(outcome, 6)
            made.append(outcome)
        return outcome

    monkeypatch.setattr(Directory, "run", run)
    settings = Settings(
        timeouts=PATIENT,
        credentials_dir=copy.folder / "credentials",
    )
    rate = 2 * EVENTS * SIZE // 30  # each byte is read twice: for the copy and for the comparison
    (report,) = run_copies(
        copy.file.read_text(), settings=settings, limits=Limits(bytes_per_second=rate)
    )
    assert report.outcome is Outcome.COPIED, report.error
    assert len(made) > 9
    monkeypatch.undo()
    assert_copied(server, witness, copy)
