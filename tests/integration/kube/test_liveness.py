"""The liveness probe of a running operator whose connections to the API server we can freeze."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

import pytest
import yaml

from localstore.ports import free_ports
from support.tenant import Tenant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from localcluster import Cluster

SLUICE = Path(sys.executable).with_name("sluice")


class Link:
    """A TCP relay that can let the connections of a moment hang for ever.

    Args:
        host: where to.
        port: the port there.
    """

    def __init__(self, host: str, port: int) -> None:
        self._to = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._generation = 0
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        """It relays from the beginning."""
        return self

    def __exit__(self, *_: object) -> None:
        """Hang up everywhere."""
        for one in [self._listener, *self._sockets]:
            one.close()

    def freeze(self) -> None:
        """From now on, nothing passes on the connections that are open; new ones are fine."""
        self._generation += 1

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
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
                other.sendall(data)
            other.shutdown(socket.SHUT_WR)
        except OSError:
            return


@contextmanager
def _operator(folder: Path, kubeconfig: Path, namespace: str) -> Iterator[int]:
    """An operator on this machine for one namespace; the port of its probes."""
    (port,) = free_ports(1)
    config = folder / "config.yaml"
    config.write_text(
        yaml.safe_dump(
            {
                "clusterID": namespace,
                "namespaces": [namespace],
                "resyncSeconds": 1,
                "listen": {"host": "127.0.0.1", "port": port},
                "image": "localhost/sluice:none",
            }
        )
    )
    with (folder / "operator.log").open("wb") as log:
        process = subprocess.Popen(
            [SLUICE, "--log-level=info", "operator", f"--config={config}"],
            env=os.environ | {"KUBECONFIG": str(kubeconfig)},
            stderr=log,
        )
        try:
            yield port
        finally:
            process.terminate()
            process.wait(timeout=30)


def _probe(port: int, path: str) -> tuple[int, str]:
    """The answer of a probe; 0 while nobody listens."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return 0, ""


def _until(what: str, check: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < deadline, what
        time.sleep(0.2)


@pytest.mark.usefixtures("definitions")
@pytest.mark.timeout(300)
def test_liveness_fails_when_a_watch_is_dead(kube: Cluster, namespace: str, tmp_path: Path) -> None:
    """Watches that hang while all other calls go through are noticed by comparing with lists."""
    text = kube.kubeconfig.read_text()
    match = re.search(r"https://[^\s\"]+", text)
    assert match is not None
    url = urlsplit(match[0])
    with Link(str(url.hostname), url.port or 443) as link:
        through = tmp_path / "kubeconfig"
        through.write_text(text.replace(match[0], f"https://127.0.0.1:{link.port}"))
        with _operator(tmp_path, through, namespace) as port:
            _until("ready", lambda: _probe(port, "readyz")[0] == 200, 60)
            tenant = Tenant(kube, namespace, None, print)  # type: ignore[arg-type]
            tenant.apply(tenant.store_resource(uri="tcp://127.0.0.1:9"))
            _until(
                "the store was looked at",
                lambda: bool(tenant.condition("store", resource="sst")),
                60,
            )
            assert _probe(port, "livez") == (200, "ok\n")
            link.freeze()
            tenant.run("annotate", "sst", "store", "touched=yes")
            _until("liveness fails", lambda: _probe(port, "livez")[0] == 500, 120)
            assert "the watch of StreamStore misses changes" in _probe(port, "livez")[1]
