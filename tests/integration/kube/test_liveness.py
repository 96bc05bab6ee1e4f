"""The liveness probe of a running operator whose connections to the API server we can freeze."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from localstore.ports import free_ports
from support.link import Link
from support.tenant import Tenant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from localcluster import Cluster

SLUICE = Path(sys.executable).with_name("sluice")


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
    through = tmp_path / "kubeconfig"
    with (
        Link.to(kube.kubeconfig, through) as link,
        _operator(tmp_path, through, namespace) as port,
    ):
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
