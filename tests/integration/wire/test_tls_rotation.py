"""Certificates of a store that change during a copy and during following."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from localstore import ForeignClient, Standalone
from localstore.accounts import ADMIN
from localstore.certificates import Authority
from support.until import until
from support.wire.secured import SecuredCopy, SecuredFollowing, mount
from support.wire.tls_front import TLSFront
from support.wire.tls_names import serving

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from support.command.sluice_command import Copy

HOST = "127.0.0.1"
LATE = 4.0
"""Seconds until changed certificates reach the files of a process."""


@dataclass
class Place:
    """A store behind servers with TLS, whose certificates can be changed.

    Attributes:
        controller: the server in front of the controller.
        segments: the server in front of the segment store.
        witness: the store's own client, which goes past them.
        folder: the folder of the authorities.
        authority: the authority of the present certificates.
    """

    controller: TLSFront
    segments: TLSFront
    witness: ForeignClient
    folder: Path
    authority: Authority

    @property
    def uri(self) -> str:
        """The address of the store."""
        return f"tls://{HOST}:{self.controller.port}"

    def rotate(self, copy: Copy) -> None:
        """Change the authority and all certificates. The file of a copy changes a little later."""
        name = f"{self.authority.bundle.stem}x"
        self.authority = Authority(self.folder, name)
        context = server_of(self.authority)
        for front in (self.controller, self.segments):
            front.rotate(context)
        bundle = copy.folder / "credentials" / "_trust" / "ca.crt"
        text = self.authority.bundle.read_text()
        threading.Timer(LATE, bundle.write_text, [text]).start()


def server_of(authority: Authority) -> ssl.SSLContext:
    """Return a server's certificate by an authority."""
    context = serving(authority.issue(f"{authority.bundle.stem}-server", HOST))
    context.set_alpn_protocols(["h2"])
    return context


@pytest.fixture(scope="module")
def place(
    announce: Callable[[str], AbstractContextManager[None]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Place]:
    """Yield a store behind servers with TLS."""
    folder = tmp_path_factory.mktemp("authorities")
    authority = Authority(folder, "a")
    context = server_of(authority)
    with ExitStack() as stack:
        controller = stack.enter_context(TLSFront(context))
        segments = stack.enter_context(TLSFront(context))
        server = Standalone(users=[ADMIN], heap="2g", published_port=segments.port)
        segments.backend, controller.backend = server.segment_store, server.controller
        stack.callback(server.stop)
        with announce("Pravega standalone behind TLS"):
            server.start()
        witness = stack.enter_context(ForeignClient(server.controller_uri, user=ADMIN))
        yield Place(controller, segments, witness, folder, authority)


def assert_same(place: Place, copy: Copy, events: int) -> None:
    """Check that the target has the source's events, each once, in the order of each key."""
    source, target = place.witness.read(*copy.source), place.witness.read(*copy.target)
    assert target.clean, target
    assert (target.events, target.digest) == (events, source.digest)


@pytest.mark.exhaustive
@pytest.mark.parametrize("by", ["threads", "spark"])
def test_a_copy_goes_on_with_the_new_certificates(place: Place, tmp_path: Path, by: str) -> None:
    """A copy goes on with new certificates, though its file changes seconds after the servers."""
    scope = f"copied-by-{by}"
    place.witness.create(scope, "source", segments=2)
    place.witness.write(scope, "source", events=20_000, size=1000, keys=20)
    copy = SecuredCopy(tmp_path, place.uri, (scope, "source"), (scope, "target"))
    copy.limits = {"bytesPerSecond": 4_000_000}
    if by == "spark":
        copy.environment["SLUICE_SPARK_BYTES"] = "1"
    mount(copy, ADMIN, place.authority.bundle.read_text())
    before = place.segments.greeted
    with copy.running("run", "-o", "json") as process:
        until("bytes are on their way", lambda: place.segments.greeted > before + 2)
        place.rotate(copy)
        out, err = process.communicate(timeout=240)
    assert process.returncode == 0, err
    assert '"outcome": "Copied"' in out
    assert "is of no trusted authority" in err, "the certificates changed too late"
    assert_same(place, copy, 20_000)


@pytest.mark.exhaustive
def test_a_follower_goes_on_with_the_new_certificates(place: Place, tmp_path: Path) -> None:
    """The same follower goes on with new certificates, and each event comes once."""
    place.witness.create("followed", "source", segments=2)
    place.witness.write("followed", "source", events=1000, keys=8)
    copy = SecuredFollowing(tmp_path, place.uri, ("followed", "source"), ("followed", "target"))
    mount(copy, ADMIN, place.authority.bundle.read_text())
    with copy.following("-o", "json") as process:
        for step in (1, 2):
            place.rotate(copy)
            place.witness.write("followed", "source", events=1000, keys=8, first=1000 * step)
            until(
                "the target has all",
                lambda wanted=1000 * (step + 1): (
                    place.witness.visible("followed", "target").events == wanted
                ),
            )
        copy.ends = {"cutover": "SealAndDrain"}
        ended = copy.run("run", "-o", "json")
        assert ended.code == 0, ended.err
        assert process.ended().code == 0, process.said
    assert_same(place, copy, 3000)
