"""`sluice status`: the copies that it shows, and its text about them and their streams."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from sluice.core.scope.scope import StreamResult, StreamState
from sluice.core.values.trouble import Trouble
from sluice.errors import SourceNotFound
from sluice.kube.api import context
from sluice.kube.api.client import Api
from sluice.kube.api.kinds import CONFIG_MAP, COPIES, SCOPE_COPY
from sluice.kube.api.names import Child
from sluice.kube.jobs import results
from support.cases import resources
from support.command.spelling import parsed
from support.kube.finalizing import FinalizingServer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sluice.kube.api.kinds import Object

    Sluice = Callable[..., tuple[int, str, str]]

TIME = "2026-01-01T00:00:00Z"
RUNNING: dict[str, Any] = {
    "conditions": [
        {
            "type": "Ready",
            "status": "Unknown",
            "reason": "Copying",
            "message": "12 of 30 streams are copied.",
            "lastTransitionTime": TIME,
        },
        {
            "type": "Reconciling",
            "status": "True",
            "reason": "Copying",
            "lastTransitionTime": TIME,
        },
    ],
    "progress": {
        "bytes": 42 << 20,
        "totalBytes": 100 << 20,
        "percent": 42,
        "bytesPerSecond": 5 << 20,
        "etaSeconds": 12,
    },
    "attempts": 2,
    "failures": 1,
    "retryTime": TIME,
}
PARTLY: dict[str, Any] = {
    "conditions": [
        {
            "type": "Ready",
            "status": "False",
            "reason": "PartiallySucceeded",
            "message": "1 stream failed.",
            "lastTransitionTime": TIME,
        }
    ],
    "progress": {"bytes": 1024, "totalBytes": 1024, "percent": 100, "bytesPerSecond": 9},
    "streams": {"total": 3, "copied": 1, "failed": 1, "stopped": 1, "leftOut": 7},
    "leftOut": [{"reason": "NotSelected", "count": 5}, {"reason": "Internal", "count": 2}],
    "keyValueTables": ["prices", "stock"],
    "attempts": 1,
    "completionTime": TIME,
}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> FinalizingServer:
    """Return the API server that the command finds; users work in the namespace team."""
    made = FinalizingServer()

    async def connect() -> FinalizingServer:
        return made

    monkeypatch.setattr(Api, "connect", connect)
    monkeypatch.setattr(context, "current_namespace", lambda: "team")
    return made


@pytest.fixture
def sluice(run_here: Sluice) -> Sluice:
    """Return the command, which takes arguments and returns exit code, output and error."""
    return partial(run_here, "sluice", "status")


def put(
    server: FinalizingServer,
    like: Object,
    name: str,
    *,
    namespace: str = "team",
    status: Object | None = None,
) -> Object:
    """Put a copy into the cluster."""
    body = resources.changed(like, "metadata", {"name": name, "namespace": namespace})
    kind = COPIES[like["kind"]]
    return server.put(kind, body | ({} if status is None else {"status": status}))


def publish(server: FinalizingServer, body: Object, *found: StreamResult) -> None:
    """Write each stream's result, as the operator does."""
    meta = body["metadata"]
    child = Child(kind=SCOPE_COPY, namespace="team", name=meta["name"], uid=meta["uid"])
    for config_map in results.config_maps(child, found):
        server.put(CONFIG_MAP, config_map)


def copied(stream: str) -> StreamResult:
    """Return the result of a copied stream."""
    return StreamResult(stream=stream, target=f"old-{stream}", state=StreamState.COPIED, bytes=1536)


FAILED = StreamResult(
    stream="gone",
    target="old-gone",
    state=StreamState.FAILED,
    bytes=7,
    trouble=Trouble.of(SourceNotFound("there is no stream in/gone")),
)


def test_the_copies_of_the_current_namespace_are_shown(
    server: FinalizingServer, sluice: Sluice
) -> None:
    """As with kubectl, they come by namespace, kind and name; others only on request."""
    put(server, resources.COPY, "orders")
    put(server, resources.SCOPE, "shop")
    put(server, resources.SCOPE, "far", namespace="far")

    def heads(*arguments: str) -> list[str]:
        code, out, err = sluice(*arguments)
        assert (code, err) == (0, "")
        return [line.split(":")[0] for line in out.splitlines() if line.startswith("S")]

    assert heads() == ["ScopeCopy team/shop", "StreamCopy team/orders"]
    assert heads("-n", "far") == ["ScopeCopy far/far"]
    assert heads("-A") == ["ScopeCopy far/far", "ScopeCopy team/shop", "StreamCopy team/orders"]
    assert heads("orders") == ["StreamCopy team/orders"]
    assert heads("far", "-A") == ["ScopeCopy far/far"]


def test_a_copy_that_is_not_there_is_wrong_input(server: FinalizingServer, sluice: Sluice) -> None:
    """This needs a name on the command line. Two ways to name namespaces are wrong, too."""
    assert sluice() == (0, "", "There are no copies.\n")
    code, out, err = sluice("shop")
    assert (code, out) == (2, "")
    assert "there is no resource 'shop' in namespace 'team'" in err
    assert "sluice get --all-namespaces" in err
    assert "in any namespace" in sluice("shop", "-A")[2]
    assert sluice("-A", "-n", "team")[0] == 2


def test_a_running_copy_tells_how_far_it_is(server: FinalizingServer, sluice: Sluice) -> None:
    """The output has condition, reason, message, progress, rate, time left and attempts."""
    put(server, resources.COPY, "orders", status=RUNNING)
    assert sluice()[1] == (
        "StreamCopy team/orders: local:in/orders -> local:out/orders\n"
        "  Ready Unknown (Reconciling), Copying: 12 of 30 streams are copied.\n"
        "  42% of 105 MB  5.2 MB/s  ETA 12s  2 attempts  1 failed in a row  "
        "next at 2026-01-01T00:00:00Z\n"
    )


def test_a_watch_shows_copies_until_none_is_at_work(
    server: FinalizingServer, sluice: Sluice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It shows them repeatedly, and finally when all have ended; a failed copy is not at work."""
    put(server, resources.COPY, "orders", status=RUNNING)
    put(server, resources.SCOPE, "shop", status=PARTLY)
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 2:
            done = {"conditions": [RUNNING["conditions"][0] | {"status": "True"}]}
            server.edit(COPIES["StreamCopy"], "orders", "team", status=done)

    monkeypatch.setattr("sluice.commands.cluster.status.time.sleep", sleep)
    code, out, _ = sluice("--watch")
    assert code == 0
    assert waits == [2.0, 2.0]
    assert out.count("StreamCopy team/orders") == out.count("ScopeCopy team/shop") == 3
    assert "Ready True" in out.rpartition("StreamCopy team/orders")[2]
    assert sluice("--watch", "-o", "json")[0] == 2


def test_a_scope_shows_its_streams_and_failed_ones_first(
    server: FinalizingServer, sluice: Sluice
) -> None:
    """The table has state, size, target and reason. A finished copy has no rate or time left."""
    stopped = StreamResult(stream="late", target="old-late", state=StreamState.STOPPED)
    body = put(server, resources.SCOPE, "shop", status=PARTLY)
    publish(server, body, copied("a"), stopped, FAILED)
    assert sluice()[1] == (
        "ScopeCopy team/shop: local:in -> local:out\n"
        "  Ready False, PartiallySucceeded: 1 stream failed.\n"
        "  1/3 streams  1 failed  1 stopped  100% of 1.0 kB  1 attempt\n"
        "  left out: 5 NotSelected, 2 Internal\n"
        "  key-value tables, not copied: prices, stock\n"
        "  STATE    STREAM  TARGET    BYTES   REASON\n"
        "  Failed   gone    old-gone  7 B     SourceNotFound: there is no stream in/gone. "
        "Check the scope and the stream's name; nothing was made.\n"
        "  Stopped  late    old-late  0 B\n"
        "  Copied   a       old-a     1.5 kB\n"
    )


def test_many_streams_are_counted(server: FinalizingServer, sluice: Sluice) -> None:
    """Fifty are shown without --all, --failed shows only failed ones, and all ConfigMaps count."""
    body = put(server, resources.SCOPE, "shop", status=PARTLY)
    publish(server, body, *(copied(f"s{number:04}") for number in range(1200)), FAILED)
    out = sluice()[1]
    assert (out.count("Copied "), out.count("Failed ")) == (49, 1)
    assert out.endswith("\n  ... and 1,151 more: --all\n")
    out = sluice("--all")[1]
    assert (out.count("Copied "), out.count("more")) == (1200, 0)
    out = sluice("--failed")[1]
    assert (out.count("Copied "), out.count("Failed "), out.count("more")) == (0, 1, 0)


def test_results_that_are_not_whole_are_not_shown(server: FinalizingServer, sluice: Sluice) -> None:
    """If one of the ConfigMaps is missing, no list is better than a misleading part."""
    body = put(server, resources.SCOPE, "shop", status=PARTLY)
    publish(server, body, *(copied(f"s{number:04}") for number in range(1200)))
    names = [name for kind, _, name in server.objects if kind == "ConfigMap"]
    del server.objects["ConfigMap", "team", names[-1]]
    assert "Copied " not in sluice()[1]


def test_what_the_operator_has_not_looked_at_is_said(
    server: FinalizingServer, sluice: Sluice
) -> None:
    """Resources in deletion are marked, too."""
    body = put(server, resources.SCOPE, "shop")
    body["metadata"]["deletionTimestamp"] = TIME
    assert sluice()[1] == (
        "ScopeCopy team/shop (being deleted): local:in -> local:out\n"
        "  the operator has not looked at it yet\n"
    )


def test_programs_get_all_of_it(server: FinalizingServer, sluice: Sluice) -> None:
    """The JSON has the whole status and every stream; with --failed, only the failed ones."""
    body = put(server, resources.SCOPE, "shop", status=PARTLY)
    publish(server, body, *(copied(f"s{number:04}") for number in range(60)), FAILED)
    put(server, resources.COPY, "orders", status=RUNNING)
    code, out, err = sluice("-o", "json")
    assert (code, err) == (0, "")
    shop, orders = parsed(out)
    assert (shop["kind"], shop["namespace"], shop["name"]) == ("ScopeCopy", "team", "shop")
    assert shop["status"]["streams"]["failed"] == 1
    assert [one["state"] for one in shop["streams"]] == ["Failed"] + ["Copied"] * 60
    assert shop["streams"][0]["trouble"]["reason"] == "SourceNotFound"
    assert (orders["source"], orders["streams"]) == ("local:in/orders", None)
    (shop,) = parsed(sluice("shop", "--failed", "-o", "json")[1])
    assert [one["stream"] for one in shop["streams"]] == ["gone"]


def test_several_sources_are_counted(server: FinalizingServer, sluice: Sluice) -> None:
    """The first one is named."""
    body = put(server, resources.COPY, "week")
    first = body["spec"].pop("source")
    body["spec"]["sources"] = [first, first | {"stream": "late"}]
    assert "local:in/orders and 1 more -> local:out/orders" in sluice()[1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("contexts: [{name: a, context: {cluster: c, user: u, namespace: team}}]", "team"),
        ("contexts: [{name: a, context: {cluster: c, user: u}}]", "default"),
        (None, "default"),
    ],
    ids=["named", "not named", "no file"],
)
def test_the_namespace_is_that_of_the_context(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str | None, expected: str
) -> None:
    """It comes from KUBECONFIG, or is default."""
    file = tmp_path / "config"
    if text is not None:
        clusters = "clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]"
        file.write_text(f"current-context: a\n{clusters}\n{text}\n")
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setenv("KUBECONFIG", str(file))
    monkeypatch.setattr("kubernetes.aio.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(file))
    assert context.current_namespace() == expected


def test_a_pod_works_in_its_own_namespace(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its service account has the namespace."""
    file = tmp_path / "namespace"
    file.write_text("sluice-system")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setattr(context, "POD_NAMESPACE", file)
    assert context.current_namespace() == "sluice-system"


def test_what_a_tenant_wrote_does_nothing_to_a_terminal(
    server: FinalizingServer, sluice: Sluice
) -> None:
    """A line stays a line, and no part of it is a terminal command."""
    body = put(server, resources.SCOPE, "shop")
    publish(server, body, copied("a\x1b]0;title\x07\x9b2J\nReady True"))
    out = sluice()[1]
    assert all(one.isprintable() for one in out.replace("\n", ""))
    assert out.count("\n") == 4


def test_an_archive_is_shown_with_its_runs(server: FinalizingServer, sluice: Sluice) -> None:
    """The output has its place, restorable runs, the last success and the next time."""
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "Archived",
        "message": "Run 3 is recorded.",
        "lastTransitionTime": TIME,
    }
    status = {"conditions": [ready], "archive": {"runs": 3}, "nextRunTime": TIME}
    status["lastSuccessTime"] = "2025-12-31T03:04:05Z"
    put(server, resources.ARCHIVE, "orders", status=status)
    code, out, _ = sluice()
    assert code == 0
    assert "StreamArchive team/orders: local:in/orders -> archives/in/orders" in out
    assert "Ready True, Archived: Run 3 is recorded." in out
    assert "3 runs  last success 2025-12-31 03:04 UTC  next run 2026-01-01 00:00 UTC" in out
