"""The commands, screens and picture of the tutorial, compared with a cluster.

`SLUICE_UPDATE_SCREENS=1` writes today's screens into the page instead of comparing them.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from localcluster.release import restrict
from support.command import pictures
from support.command import screens as pages
from support.command.screens import Screen
from support.command.warm import SLUICE
from support.tenants.tenant import Tenant
from support.until import PATIENTLY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from e2e.operator.conftest import Operator
    from localcluster import Cluster
    from localcluster.store import ClusterStore
    from localstore import ForeignClient

pytestmark = pytest.mark.exhaustive

ROOT: Final = Path(__file__).parents[4]
PAGE: Final = ROOT / "docs" / "tutorial.md"
PICTURE: Final = ROOT / "docs" / "images" / "tutorial-status.svg"
STATUS: Final = "sluice status"
NAMESPACE: Final = "sluice-test-tutorial"
ARCHIVE: Final = "tutorial/events-archive"
EVENTS: Final = 1_000_000
WAIT: Final = "--for=condition=Ready --timeout=5m"
SCREENS: Final = {
    "tutorial-copied": Screen("get scopy"),
    "tutorial-runs": Screen("get sarc"),
    "tutorial-held": Screen("get eps"),
    "tutorial-gone": Screen("get eps,scopy"),
}


@pytest.fixture(scope="module")
def tenant(
    kube: Cluster, sluice: Operator, store: ClusterStore, java: ForeignClient
) -> Iterator[Tenant]:
    """Yield the tutorial's namespace, with the stream that it begins with."""
    assert sluice
    clear(kube)
    fill(java)
    restrict(kube, NAMESPACE)
    yield Tenant(kube, NAMESPACE, store, print)
    clear(kube)


def clear(kube: Cluster) -> None:
    """Delete the objects of the tutorial, and the files of its archive."""
    gone = ("--ignore-not-found", PATIENTLY)
    kube.kubectl("delete", "namespace", NAMESPACE, *gone)
    kube.kubectl("delete", "pv", "tutorial", *gone)


def fill(java: ForeignClient) -> None:
    """Make the stream of the demo, and the scope of its copy."""
    java.create_scope("in")
    java.create_scope("out")
    if java.create("in", "events", segments=4):
        java.write("in", "events", events=EVENTS, keys=1000)
    if "events" in (java.streams("out") or ()):
        java.seal("out", "events")
        java.delete("out", "events")


def play(tenant: Tenant) -> tuple[dict[str, str], str]:
    """Follow the tutorial. Return the screens, and the output of `sluice status`."""
    found = {}

    def look(name: str) -> None:
        found[name] = SCREENS[name].show(tenant).replace(NAMESPACE, "demo")

    example = (ROOT / "examples" / "streamcopy.yaml").read_text(encoding="utf-8")
    tenant.run("apply", "--filename=-", stdin=re.sub(r"tcp://\S+", tenant.store.uri, example))
    tenant.run("wait", "scopy/events", *WAIT.split(), timeout=310)
    look("tutorial-copied")
    archive, held, restore = pages.yaml_blocks(PAGE)
    # Each run has its own directory, since a volume's archive stays when its resource goes.
    own = f"tutorial-{os.getpid()}/events-archive"
    archive, restore = (text.replace(ARCHIVE, own) for text in (archive, restore))
    tenant.run("apply", "--filename=-", stdin=archive)
    tenant.run("wait", "sarc/events", *WAIT.split(), timeout=310)
    look("tutorial-runs")
    image = "--image=localhost/none:1"
    tenant.run("create", "deployment", "report", image, "--replicas=0")
    tenant.run("apply", "--filename=-", stdin=held)
    tenant.run("wait", "eps/report", *WAIT.split(), timeout=310)
    look("tutorial-held")
    tenant.run("apply", "--filename=-", stdin=restore)
    tenant.run("wait", "scopy/events-restored", *WAIT.split(), timeout=310)
    status = sluice_status(tenant).replace(own, ARCHIVE)
    tenant.run("delete", "deployment", "report")
    tenant.run("wait", "eps/report", "--for=delete", "--timeout=2m")
    look("tutorial-gone")
    return found, status


def sluice_status(tenant: Tenant) -> str:
    """Return the output of `sluice status`, with its colours."""
    environment = {"KUBECONFIG": str(tenant.cluster.kubeconfig), "FORCE_COLOR": "1"}
    return subprocess.run(
        [SLUICE, "status", "--namespace", tenant.namespace],
        check=True,
        env=os.environ | environment | {"COLUMNS": str(pictures.WIDTH)},
        capture_output=True,
        text=True,
        timeout=60,
    ).stdout.replace(NAMESPACE, "demo")


def update(screens: dict[str, str], status: str) -> None:
    """Write screens and picture into the documents."""
    pages.write(PAGE, screens)
    drawn = pictures.draw("status", STATUS, status)
    if not PICTURE.exists() or pages.normal(pictures.text_of(PICTURE)) != pages.normal(
        pictures.described(drawn)
    ):
        PICTURE.write_text(drawn, encoding="utf-8")


@pytest.fixture(scope="module")
def played(tenant: Tenant) -> tuple[dict[str, str], str]:
    """Return the screens and the status after the tutorial."""
    screens, status = play(tenant)
    if pages.UPDATE:
        update(screens, status)
    return screens, status


def test_screens_are_true(played: tuple[dict[str, str], str]) -> None:
    """The page shows the commands' output, except parts that differ from run to run."""
    screens, _ = played
    assert {name for name, _ in pages.shown(PAGE)} == set(SCREENS)
    assert pages.difference(PAGE, screens) == ""


def test_the_picture_is_true(played: tuple[dict[str, str], str]) -> None:
    """The picture shows the output of `sluice status`, except parts that differ between runs."""
    _, status = played
    now = pictures.described(pictures.draw("status", STATUS, status))
    assert pages.normal(pictures.text_of(PICTURE)) == pages.normal(now)


def test_the_stream_is_gone_and_its_copy_is_not(
    played: tuple[dict[str, str], str], java: ForeignClient
) -> None:
    """The restored stream went with its workload. The archived stream has all events."""
    assert played
    assert not java.streams("report")
    assert java.read("out", "events").events == EVENTS
