"""A real streaming application as owner. It counts words, and makes streams of its own.

The application is that of examples/, with Pravega's Java client. It runs once for all tests: it
starts, is scaled to zero and back, and its Deployment is deleted. Another process with that client
lists the streams. The bytes of the output have the counts.
"""

from __future__ import annotations

import re
import struct
import subprocess
import time
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple

import pytest
import yaml

import segment_hash
from localcluster.images.wordcount import wordcount_image
from localcluster.release import ROOT, restrict
from support.command import screens as pages
from support.command.screens import Screen
from support.tenants.tenant import Tenant
from support.until import PATIENTLY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from e2e.operator.conftest import Operator
    from localcluster import Cluster
    from localcluster.store import ClusterStore
    from localstore import ForeignClient
    from support.tenants.tenant import Object

pytestmark = pytest.mark.exhaustive

EXAMPLE: Final = ROOT / "examples" / "ephemeralstream-application.yaml"
GUIDE: Final = ROOT / "docs" / "wordcount.md"
NAMESPACE: Final = "sluice-test-words"
SCOPE: Final = "words"
HELPERS: Final = {"wordcount-metrics", "wordcount-state", "wordcount-watermarks"}
OLDER: Final = "wordcount-archive"
OTHERS: Final = {"_RGwordcount-readers", "counts", "lines", OLDER}
LINES: Final = 200
KEYS: Final = 10
WORDS: Final = 4
"""Words in each event of the foreign client: key, sequence, number, padding."""

FAREWELL: Final = 8
"""Seconds between SIGTERM and the application's last new stream."""

GET: Final = Screen("get eps wordcount")
SCREENS: Final = {
    "app-running": GET,
    "app-scaled": GET,
    "app-logs": Screen("logs deployment/wordcount"),
    "app-deleted": GET,
}


class Life(NamedTuple):
    """Observations of the application's life.

    Attributes:
        running: the streams while it ran.
        scaled: the streams while it was scaled to zero.
        message: the message of its EphemeralStream at that time.
        results: events of the output, after the first lines and at the end.
        latest: the last result of a word.
        released: the time at which the first of its streams was gone.
        last: the time at which it made its last stream, and the stream's name.
        left: the streams once its EphemeralStream was gone.
        seconds: durations.
        screens: the output of commands during its life.
    """

    running: set[str]
    scaled: set[str]
    message: str
    results: tuple[int, int]
    latest: int
    released: datetime
    last: tuple[datetime, str]
    left: set[str]
    seconds: dict[str, float]
    screens: dict[str, str]


@pytest.fixture(scope="module")
def tenant(
    kube: Cluster, sluice: Operator, store: ClusterStore, java: ForeignClient
) -> Iterator[Tenant]:
    """Yield a namespace that admits restricted pods only. The example's scope is as new."""
    assert sluice
    kube.kubectl(*("delete", "namespace", NAMESPACE, "--ignore-not-found", PATIENTLY))
    if java.streams(SCOPE) is not None:
        java.delete_scope(SCOPE)
    for stream in ("lines", "counts", OLDER):
        java.create(SCOPE, stream)
    restrict(kube, NAMESPACE)
    yield Tenant(kube, NAMESPACE, store, print)
    kube.kubectl("delete", "namespace", NAMESPACE, PATIENTLY)
    java.delete_scope(SCOPE)


@pytest.fixture(scope="module")
def example(tenant: Tenant) -> list[Object]:
    """Return the example's objects, changed for the cluster of the tests."""
    image = tenant.cluster.provide(wordcount_image(lambda _: None), say=lambda _: None)
    text = re.sub(r"tcp://[^\s\"]+", tenant.store.uri, EXAMPLE.read_text(encoding="utf-8"))
    text = text.replace("localhost/wordcount:dev", image).replace("namespace: demo", "")
    return list(yaml.safe_load_all(text))


@pytest.fixture(scope="module")
def life(tenant: Tenant, java: ForeignClient, example: list[Object]) -> Life:
    """Return the observations of the application's whole life."""
    screens, seconds = {}, {}
    # On a busy machine the application may be faster than the claim, which owns only later streams.
    *claim, deployment = example
    tenant.apply(*claim)
    _until_owned(tenant, streams=0)
    began = time.monotonic()
    tenant.apply(deployment)
    _write(java, first=0)
    first = _until_counted(tenant, java, LINES)
    seconds["applied -> all lines counted"] = time.monotonic() - began
    running = _streams(java)
    screens["app-running"] = _get(tenant, streams=len(HELPERS))

    tenant.run("scale", "deployment/wordcount", "--replicas=0")
    tenant.until("its pod is gone", lambda: not tenant.get_all("pods"))
    scaled = _streams(java)
    screens["app-scaled"] = _get(tenant, streams=len(HELPERS) + 1)
    message = tenant.condition("wordcount", resource="eps")["message"]

    _write(java, first=LINES)
    tenant.run("set", "env", "deployment/wordcount", f"FAREWELL_SECONDS={FAREWELL}")
    tenant.run("scale", "deployment/wordcount", "--replicas=1")
    second = _until_counted(tenant, java, 2 * LINES)
    screens["app-logs"] = SCREENS["app-logs"].show(tenant)

    with _log(tenant) as log:
        began = time.monotonic()
        tenant.run("delete", "deployment", "wordcount")
        tenant.until("its streams go", lambda: HELPERS - _streams(java))
        released = datetime.now(UTC)
        seconds["Deployment deleted -> streams go"] = time.monotonic() - began
        screens["app-deleted"] = SCREENS["app-deleted"].show(tenant)
        tenant.until_gone("eps", "wordcount")
        seconds["Deployment deleted -> EphemeralStream gone"] = time.monotonic() - began
    if pages.UPDATE:
        pages.write(GUIDE, screens)
    return Life(
        running=running,
        scaled=scaled,
        message=message,
        results=(first, second),
        latest=_last_result(tenant.store, "k0"),
        released=released,
        last=_last_stream(log),
        left=set(java.streams(SCOPE) or ()),
        seconds=seconds,
        screens=screens,
    )


def test_an_application_makes_streams_of_its_own(life: Life) -> None:
    """The application counts words, and has made its streams under its prefix."""
    assert life.results[0] == LINES * WORDS
    assert life.running == HELPERS | OTHERS


def test_streams_stay_while_it_is_scaled_to_nothing(life: Life) -> None:
    """Streams stay at zero replicas: the Deployment is the owner. Older ones are not owned."""
    (summary,) = life.scaled - life.running
    assert summary.startswith("wordcount-summary-")
    assert life.scaled > life.running
    assert "4 streams under 'wordcount-' are owned. 1 that are older" in life.message


def test_it_goes_on_where_it_was(life: Life) -> None:
    """Scaled up again, the application finds its state, and counts each line once."""
    assert life.results == (LINES * WORDS, 2 * LINES * WORDS)
    assert life.latest == 2 * LINES // KEYS


def test_its_streams_go_with_it(life: Life, say: Callable[[str], None]) -> None:
    """All its streams go with it, and the claim's marker. Other streams stay."""
    for what, took in life.seconds.items():
        say(f"  {what}: {took:.1f} s")
    assert life.left == OTHERS


def test_what_its_pod_makes_while_it_stops_goes_as_well(life: Life) -> None:
    """Streams that its stopping pod makes go as well, even after the first deletions."""
    made, stream = life.last
    assert stream.startswith("wordcount-summary-")
    assert stream not in life.scaled
    assert made > life.released


def test_other_streams_are_as_they_were(life: Life, java: ForeignClient) -> None:
    """Input, output and older streams are whole, and can be written."""
    assert life.left
    assert java.visible(SCOPE, "lines").events == 2 * LINES
    assert java.visible(SCOPE, "counts").events == 2 * LINES * WORDS
    assert not any(java.info(SCOPE, stream).sealed for stream in ("lines", "counts", OLDER))


def test_screens_are_true(life: Life) -> None:
    """The guide shows the output of the commands."""
    names = {name for name, _ in pages.shown(GUIDE) if name.startswith("app-")}
    assert names == set(SCREENS) == set(life.screens)
    assert pages.difference(GUIDE, life.screens) == ""


def test_an_owner_that_is_made_again_is_left_alone(tenant: Tenant, example: list[Object]) -> None:
    """After a recreation of the owner, new streams stay, as they may belong to the new owner."""
    store, stream, _ = example
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "again"}
    spec = stream["spec"] | {"streamPrefix": "again-", "owners": [owner]}
    make = ("create", "deployment", "again", "--image=localhost/none:1", "--replicas=0")
    tenant.run(*make)
    tenant.apply(store, stream | {"metadata": {"name": "again"}, "spec": spec})

    def reason() -> object:
        return tenant.condition("again", resource="eps").get("reason")

    tenant.until("the prefix is claimed", lambda: reason() == "Claimed")
    tenant.run("delete", "deployment", "again")
    tenant.until("it is waited for pods", lambda: reason() == "Deleting")
    tenant.run(*make)
    tenant.until_gone("eps", "again")


def _write(java: ForeignClient, *, first: int) -> None:
    """Write lines for the application to count."""
    java.write(SCOPE, "lines", events=LINES, keys=KEYS, first=first)


def _streams(java: ForeignClient) -> set[str]:
    """Return the scope's streams, without the marker of the claim."""
    return {name for name in java.streams(SCOPE) or () if not name.startswith("_sluice-")}


def _until_counted(tenant: Tenant, java: ForeignClient, lines: int) -> int:
    """Wait until each word of this number of lines has a result. Return the results."""

    def counted() -> int:
        results = java.visible(SCOPE, "counts").events
        return results if results >= lines * WORDS else 0

    return tenant.until(f"{lines} lines are counted", counted)


def _last_result(store: ClusterStore, word: str) -> int:
    """Return the latest result of a word, from the bytes of the output.

    The segment ids of a stream that is made again continue, also in a new scope.
    """
    data = b""
    with segment_hash.Connection(*store.segment_store) as connection:
        names = (segment_hash.segment_name(SCOPE, "counts", number) for number in range(100))
        segment, info = next((one, info) for one in names if (info := connection.info(one)))
        end = info["end"]
        while len(data) < end:
            data += connection.read(segment, len(data), end - len(data))
    latest = at = 0
    while at < end:
        _, length = struct.unpack_from(">ii", data, at)
        text, _, number = data[at + 8 : at + 8 + length].decode().partition(" ")
        latest = int(number) if text == word else latest
        at += 8 + length
    return latest


def _get(tenant: Tenant, *, streams: int) -> str:
    """Return the shown EphemeralStream, once it has this number of streams."""
    # The operator looks every 30 s by itself.
    tenant.run("annotate", "eps", "wordcount", f"sluice.dev/requestedAt={streams}", "--overwrite")
    _until_owned(tenant, streams=streams)
    return GET.show(tenant)


def _until_owned(tenant: Tenant, *, streams: int) -> None:
    """Wait until the EphemeralStream reports this number of streams."""

    def counted() -> bool:
        status = (tenant.get("eps", "wordcount") or {}).get("status", {})
        return bool(status.get("streamCount") == streams)

    tenant.until(f"{streams} streams are owned", counted)


@contextmanager
def _log(tenant: Tenant) -> Iterator[list[str]]:
    """Follow the log of the application's pod to its end.

    The command names the pod, since its Deployment may be gone before kubectl asks for it.
    """
    lines: list[str] = []
    (pod,) = (one["metadata"]["name"] for one in tenant.get_all("pods"))
    words = ("logs", f"pod/{pod}", "--follow", "--timestamps")
    command = tenant.cluster.kubectl_command(f"--namespace={tenant.namespace}", *words)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as logs:
        try:
            yield lines
        finally:
            output, _ = logs.communicate(timeout=30)
            lines += output.splitlines()


def _last_stream(log: list[str]) -> tuple[datetime, str]:
    """Return the time at which the application made its last stream, and the name."""
    (line,) = (line for line in log if "summed up in" in line)
    moment, _, text = line.partition(" ")
    return datetime.fromisoformat(moment), text.rpartition(" ")[2]
