"""A TCP relay to a server whose connections can hang or break."""

from __future__ import annotations

import re
import socket
import threading
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from pathlib import Path

_CHANGE = re.compile(rb"((?:POST|PUT|PATCH|DELETE) [^ ?]+)[^ ]* HTTP/1\.1\r\n")


class Link:
    """A TCP relay that can let its present connections hang for ever, or break them.

    Args:
        host: the server's host.
        port: the server's port.

    Attributes:
        changes: method and path of each call that may change an object, if not encrypted.
    """

    def __init__(self, host: str, port: int) -> None:
        self._to = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._generation = 0
        self._away = False
        self._sockets: list[socket.socket] = []
        self.changes: list[str] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @classmethod
    def to(cls, kubeconfig: Path, through: Path) -> Self:
        """Return a relay to a kubeconfig's API server, and write `through`, a kubeconfig for it."""
        link = cls(*api_server(kubeconfig))
        lead(kubeconfig, through, link.port)
        return link

    def __enter__(self) -> Self:
        """Return the relay, which runs from its creation on."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop listening, and break all connections."""
        self._listener.close()
        self.cut()

    def freeze(self) -> None:
        """Pass no more bytes on open connections. New connections work."""
        self._generation += 1

    def go_away(self) -> None:
        """Break open connections, and refuse new ones from now on."""
        self._away = True
        self.cut()

    def come_back(self) -> None:
        """Accept new connections again."""
        self._away = False

    def cut(self) -> None:
        """Break open connections. New connections work."""
        sockets, self._sockets = self._sockets, []
        for one in sockets:
            try:
                one.shutdown(socket.SHUT_RDWR)  # close alone does not wake up a reader
            except OSError:
                pass
            finally:
                one.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
                if self._away:
                    client.close()
                    continue
                server = socket.create_connection(self._to, timeout=10)
            except OSError:
                return
            server.settimeout(None)
            self._sockets += [client, server]
            for one, other in ((client, server), (server, client)):
                threading.Thread(
                    target=self._relay, args=(one, other, self._generation), daemon=True
                ).start()

    def _relay(self, one: socket.socket, other: socket.socket, generation: int) -> None:
        try:
            while data := one.recv(1 << 16):
                if generation != self._generation:
                    return
                if found := _CHANGE.match(data):
                    self.changes.append(found[1].decode())
                other.sendall(data)
            other.shutdown(socket.SHUT_WR)
        except OSError:
            return


def api_server(kubeconfig: Path) -> tuple[str, int]:
    """Return the host and port of a kubeconfig's API server."""
    url = urlsplit(_url(kubeconfig.read_text()))
    return str(url.hostname), url.port or 443


def lead(kubeconfig: Path, through: Path, port: int) -> None:
    """Write `through`, a kubeconfig like another one, whose API server is at a port here."""
    text = kubeconfig.read_text()
    url = _url(text)
    through.write_text(text.replace(url, f"{urlsplit(url).scheme}://127.0.0.1:{port}"))


def _url(text: str) -> str:
    match = re.search(r"https?://[^\s\"]+", text)
    assert match is not None
    return match[0]
