"""README's quick start, as a script with only README's lines."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from localcluster import store_image, tools
from localcluster.images.store_image import image_command
from localcluster.release import sluice_image, uninstall
from localstore.foreign import ForeignClient
from localstore.foreign_jvm import Launch
from support.cluster.outside import EXCLUDED
from support.command.warm import SLUICE
from support.until import PATIENTLY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from e2e.operator.conftest import Operator
    from localcluster import Cluster

pytestmark = pytest.mark.alone

ROOT: Final = Path(__file__).parents[4]
QUICK_START: Final = re.compile(
    r"<!-- quick start -->\n(.*?)<!-- end of quick start -->", re.DOTALL
)
BLOCK: Final = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAMESPACES: Final = ("quickstart", "pravega-dev")
EVENTS: Final = 1000
SECONDS: Final = 900

# These are the only differences from a user's machine.
LINES: Final = {
    "kind create cluster": "the cluster of the tests",
    "docker build -t localhost/sluice:dev .": "the image of the tests",
    "kind load docker-image localhost/sluice:dev": "it is in the cluster",
    "python3 -m venv ~/.venv-sluice && . ~/.venv-sluice/bin/activate && pip install .": (
        "the environment of the tests has the command"
    ),
    "kind delete cluster": "the fixture deletes what the script made",
}
"""README's lines that do not run, each with its replacement."""

FILES: Final = {
    "manifests/install.yaml": {
        "localhost/sluice:dev": "SLUICE",
        "excludedNamespaces: []": f'excludedNamespaces: ["{EXCLUDED}"]',  # of other lanes
    },
    "manifests/pravega-dev.yaml": {"pravega/pravega:0.13.0": "PRAVEGA"},
}
"""Texts in files that README names, each with its replacement. SLUICE and PRAVEGA are images."""


@pytest.fixture
def folder(
    kube: Cluster, sluice: Operator, release: Callable[..., None], tmp_path: Path
) -> Iterator[Path]:
    """Yield a folder with the files that README names, and a cluster without Sluice.

    Afterwards the operator of the tests is restored.
    """
    images = {
        "SLUICE": kube.provide(sluice_image(), say=lambda _: None),
        "PRAVEGA": kube.provide(store_image(), say=lambda _: None),
    }
    for name in ("examples", "manifests/crds.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).symlink_to(ROOT / name)
    for name, texts in FILES.items():
        text = (ROOT / name).read_text()
        for before, after in texts.items():
            assert before in text, f"{name} has no {before}"
            text = text.replace(before, images.get(after, after))
        (tmp_path / name).write_text(text)
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "kubectl").symlink_to(tools.kubectl())
    (programs / "sluice").symlink_to(SLUICE)
    uninstall(kube)
    # A new cluster has no definitions. Here they stay, since other tests need them. But definitions
    # that Helm has left from another version would conflict.
    crds = f"--filename={ROOT / 'manifests' / 'crds.yaml'}"
    kube.kubectl("apply", "--server-side", "--force-conflicts", crds)
    try:
        yield tmp_path
    finally:
        installed = tmp_path / "manifests" / "install.yaml"
        words = ("--ignore-not-found", PATIENTLY)
        kube.kubectl("delete", "namespace", *NAMESPACES, *words, timeout=160)
        kube.kubectl("delete", f"--filename={installed}", *words, timeout=160)
        release()
        sluice.ready()


def script() -> str:
    """Return README's lines, without those that the table replaces."""
    (text,) = QUICK_START.findall((ROOT / "README.md").read_text())
    lines = [line for block in BLOCK.findall(text) for line in block.splitlines()]
    commands = [re.sub(r"\s+# .*$", "", line) for line in lines]
    assert set(LINES) <= set(commands), "a line of the table is not in README"
    return "\n".join(command for command in commands if command not in LINES)


def read_by_java(kube: Cluster, scope: str, stream: str) -> tuple[int, str]:
    """Return the number and the digest of a stream's events, by Pravega's own client."""
    java = image_command("ForeignClient", heap="256m", arguments=("tcp://localhost:9090", "serve"))
    words = ("exec", "--stdin", "--namespace=pravega-dev", "deployment/pravega", "--")
    command = kube.kubectl_command(*words, *java)
    with ForeignClient("tcp://localhost:9090", launch=lambda: Launch(command)) as client:
        read = client.read(scope, stream)
    return read.events, read.digest


def test_the_quick_start_ends_with_a_copy(folder: Path, kube: Cluster) -> None:
    """Each line succeeds, the screens show a finished copy, and Pravega's client reads it."""
    home = folder / "home"
    home.mkdir()
    done = subprocess.run(
        ["bash", "-euxo", "pipefail", "-c", script()],
        cwd=folder,
        env={
            "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
            "HOME": str(home),
            "KUBECONFIG": str(kube.kubeconfig),
        },
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert f"sample/orders holds {EVENTS:,} events" in done.stderr
    assert re.search(r"streamcopy\S*/orders\s+True\s+Copied", done.stdout), done.stdout
    assert len(re.findall(r'^\{"order": ', done.stdout, re.MULTILINE)) == 3
    source, target = (read_by_java(kube, scope, "orders") for scope in ("sample", "backup"))
    assert source == target == (EVENTS, source[1])
