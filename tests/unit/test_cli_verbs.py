"""`sluice get | describe | restore | watch | ...`: their output and their exit codes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from sluice import console
from sluice.administration import following
from sluice.errors import ApiUnavailable
from sluice.kube.api import context
from sluice.kube.api.client import Api
from sluice.kube.api.kinds import OWN, STREAM_COPY
from sluice.kube.api.objects import DRILL_REQUESTED_AT, REQUESTED_AT
from sluice.kube.api.responses import Refused
from support.cases import resources
from support.command.spelling import parsed
from support.kube.finalizing import FinalizingServer

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluice.kube.api.kinds import Object

    Sluice = Callable[..., tuple[int, str, str]]

TIME = "2026-01-01T00:00:00Z"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> FinalizingServer:
    """Return the API server that the commands find; users work in the namespace team."""
    made = FinalizingServer()

    async def connect(**_: Any) -> FinalizingServer:
        return made

    monkeypatch.setattr(Api, "connect", connect)
    monkeypatch.setattr(context, "current_namespace", lambda: "team")
    monkeypatch.setattr(following, "LOOK", 0)
    return made


@pytest.fixture
def sluice(run_here: Sluice, monkeypatch: pytest.MonkeyPatch) -> Sluice:
    """Return the program, which takes arguments and returns exit code, output and error."""
    monkeypatch.setattr(console.note, "quiet", False)

    def call(*arguments: str, program: str = "sluice") -> tuple[int, str, str]:
        return run_here(f"/usr/bin/{program}", *arguments)

    return call


def put(server: FinalizingServer, like: Object, name: str, **parts: Any) -> Object:
    """Make a resource in the namespace team."""
    meta = {
        "name": name,
        "namespace": "team",
        "generation": 1,
        "uid": f"uid-of-{name}",
        "creationTimestamp": TIME,
        "managedFields": [{"manager": "x"}],
    }
    body = resources.changed(like, "metadata", meta | parts.pop("metadata", {}))
    return server.put(OWN[like["kind"]], body | parts)


def conditions(*held: str, reason: str = "Copied", ready: str = "True") -> Object:
    """Return a status with Ready, and other conditions that hold."""
    common = {"reason": reason, "observedGeneration": 1, "lastTransitionTime": TIME}
    common["message"] = "out/orders\x1b[2J is whole"
    found = [{"type": "Ready", "status": ready, **common}]
    return {"conditions": found + [{"type": one, "status": "True", **common} for one in held]}


def test_resources_are_listed_by_kind(server: FinalizingServer, sluice: Sluice) -> None:
    """One kind is listed by name, several with the kind. Wide tables have all columns."""
    put(server, resources.COPY, "orders")
    put(server, resources.SCOPE, "shop")
    assert sluice("get", "scopy") == (0, "NAME\norders\n", "")
    assert sluice("get", "scopy", "-o", "wide")[1] == "NAME     UID\norders   uid-of-orders\n"
    assert sluice("get")[1] == (
        "NAME\nstreamcopy.sluice.dev/orders\n\nNAME\nscopecopy.sluice.dev/shop\n"
    )
    assert sluice("get", "-A", "scopy")[1] == "NAMESPACE   NAME\nteam        orders\n"
    assert sluice("get", "sarc") == (0, "", "There are no resources in namespace 'team'.\n")
    assert sluice("get", "sarc", "-A", "--quiet") == (0, "", "")


def test_resources_are_printed_for_programs(server: FinalizingServer, sluice: Sluice) -> None:
    """A named one comes by itself, several as a List, without managed fields."""
    body = put(server, resources.COPY, "orders")
    expected = {key: value for key, value in body["metadata"].items() if key != "managedFields"}
    one = parsed(sluice("get", "scopy", "orders", "-o", "json")[1])
    assert (one["kind"], one["metadata"]) == ("StreamCopy", expected)
    assert yaml.safe_load(sluice("get", "scopy/orders", "-o", "yaml")[1]) == one
    many = parsed(sluice("get", "scopy", "-o", "json")[1])
    assert (many["kind"], many["items"]) == ("List", [one])
    assert sluice("get", "-o", "name")[1] == "streamcopy.sluice.dev/orders\n"


def test_a_missing_resource_is_wrong_input(server: FinalizingServer, sluice: Sluice) -> None:
    """Each form of the error has a similar name."""
    put(server, resources.COPY, "orders")
    for words in (["get", "scopy", "order"], ["get", "scopy/order", "-o", "json"]):
        code, out, err = sluice(*words)
        assert (code, out) == (2, "")
        assert "no StreamCopy 'order' in namespace 'team'" in err
        assert "Did you mean orders?" in err


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (ApiUnavailable("no way to a Kubernetes API", remedy="Set KUBECONFIG."), "Set KUBECONFIG."),
        (ApiUnavailable("Cannot connect to host"), "Check that the cluster runs"),
        (Refused("Unauthorized", status=401, why="Unauthorized"), "Log in to the cluster again"),
        (Refused("forbidden", status=403, why="Forbidden"), "kubectl auth can-i --list"),
        (Refused("page not found", status=404, why=""), "Check that Sluice is installed"),
        (Refused("out of order", status=500, why=""), "Try again."),
    ],
    ids=str,
)
def test_a_cluster_that_refuses_is_told_with_a_remedy(
    server: FinalizingServer,
    sluice: Sluice,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    remedy: str,
) -> None:
    """The remedy is for the user, and the exit code is that of infrastructure."""

    async def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(server, "table", fail)
    code, out, err = sluice("get", "scopy")
    assert (code, out) == (4, "")
    assert f"ApiUnavailable: {error}" in err
    assert remedy in err


def test_a_description_is_one_page(server: FinalizingServer, sluice: Sluice) -> None:
    """It has spec, conditions with each message once, progress, attempts, and the next step."""
    history = {
        "attempt": 1,
        "job": "sluice-x-1",
        "startTime": TIME,
        "endTime": "2026-01-01T00:01:05Z",
        "outcome": "Failed",
        "reason": "StoreTimeout",
    }
    failure = {"reason": "StoreTimeout", "category": "Backend", "remedy": "Mend it."}
    status = conditions("Stalled", reason="StoreTimeout", ready="False") | {
        "progress": {"bytes": 42, "totalBytes": 100, "percent": 42},
        "attempts": 1,
        "history": [history],
        "lastFailure": failure,
    }
    put(server, resources.COPY, "orders", status=status)
    code, out, err = sluice("describe", "orders")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "StreamCopy team/orders"
    assert "    storeRef: {name: local}" in lines
    assert [line.split() for line in lines if line.startswith("  Stalled")] == [
        ["Stalled", "True", "StoreTimeout", "2026-01-01", "00:00:00"]
    ]
    assert out.count("is whole") == 1
    assert "\x1b" not in out
    assert "  42% of 100 B  1 attempt" in lines
    assert [line.split() for line in lines if "sluice-x-1" in line] == [
        ["1", "Failed", "StoreTimeout", "2026-01-01", "00:00:00", "1m05s", "sluice-x-1"]
    ]
    assert lines[-2:] == ["Next step", "  Mend it. Then: sluice retry streamcopy/orders."]
    told = parsed(sluice("describe", "scopy/orders", "-o", "json")[1])
    assert told[0]["nextStep"] == "Mend it. Then: sluice retry streamcopy/orders."
    assert sluice("describe", "orders", "-o", "name")[1] == "streamcopy.sluice.dev/orders\n"


def test_what_a_user_may_not_read_is_left_out_of_a_description(
    server: FinalizingServer, sluice: Sluice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The description says so."""
    put(server, resources.COPY, "orders", status=conditions())

    async def forbid(*_: Any, **__: Any) -> None:
        raise Refused("not you", status=403, why="Forbidden")

    monkeypatch.setattr(server, "list", forbid)
    code, out, _ = sluice("describe", "orders")
    assert code == 0
    assert "no right to read Jobs and pods" in out
    assert "no right to read events" in out


@pytest.mark.parametrize(
    ("status", "metadata", "step"),
    [
        ({}, {}, "Wait: the operator has not looked at it."),
        (conditions(), {}, "Nothing."),
        (conditions("Suspended", reason="Suspended", ready="Unknown"), {}, "sluice resume"),
        (conditions("Reconciling", reason="Copying", ready="Unknown"), {}, "sluice watch"),
        (conditions("Reconciling", reason="StoreNotFound", ready="Unknown"), {}, "StreamStore"),
        (conditions("Stalled", reason="SourceNotFound", ready="False"), {}, "sluice retry"),
        (conditions(), {"deletionTimestamp": TIME}, "Wait until it is gone"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_the_next_step_follows_from_the_state(
    server: FinalizingServer, sluice: Sluice, status: Object, metadata: Object, step: str
) -> None:
    """The description has the catalogue's remedy and its verb."""
    put(server, resources.COPY, "orders", status=status, metadata=metadata)
    assert step in sluice("describe", "orders")[1].partition("Next step")[2]


def test_verbs_print_what_they_changed(server: FinalizingServer, sluice: Sluice) -> None:
    """They print a line for users, or the resources as JSON; quiet ones print nothing."""
    put(server, resources.COPY, "orders")
    put(server, resources.COPY, "clicks")
    assert sluice("suspend", "orders") == (0, "", "streamcopy/orders is suspended\n")
    assert sluice("--quiet", "resume", "orders") == (0, "", "")
    console.note.quiet = False
    one = parsed(sluice("suspend", "orders", "-o", "json")[1])
    assert (one["spec"]["suspend"], "managedFields" in one["metadata"]) == (True, False)
    many = yaml.safe_load(sluice("retry", "orders", "clicks", "-o", "yaml")[1])
    assert [one["metadata"]["name"] for one in many["items"]] == ["orders", "clicks"]
    assert all(REQUESTED_AT in one["metadata"]["annotations"] for one in many["items"])
    assert sluice("resume", "orders", "-o", "name")[1] == "streamcopy.sluice.dev/orders\n"


def test_a_watch_without_a_terminal_prints_lines(server: FinalizingServer, sluice: Sluice) -> None:
    """Each change is a line, and the exit code is that of the worst resource, as with wait."""
    put(server, resources.COPY, "good", status=conditions())
    progress = {"progress": {"bytes": 42, "totalBytes": 100, "percent": 42, "bytesPerSecond": 7}}
    bad = conditions("Stalled", reason="SourceNotFound", ready="False") | progress
    put(server, resources.COPY, "bad", status=bad)
    code, out, err = sluice("watch")
    assert code == 2
    assert out.splitlines() == [
        "streamcopy/good  Copied",
        "streamcopy/bad  SourceNotFound  42%  42 B/100 B",
    ]
    assert err == "streamcopy/bad: SourceNotFound: out/orders [2J is whole\n"
    assert sluice("watch", "scopy/good", "--quiet") == (0, "", "")


def test_a_watch_of_suspended_or_unfinished_resources_ends_as_a_wait_whose_time_is_over(
    server: FinalizingServer, sluice: Sluice
) -> None:
    """Suspended resources do not delay the end."""
    put(server, resources.COPY, "held", status=conditions("Suspended", ready="Unknown"))
    code, _, err = sluice("watch")
    assert (code, err) == (124, "streamcopy/held is suspended\n")
    put(server, resources.COPY, "held", status=conditions("Reconciling", ready="Unknown"))
    code, out, err = sluice("watch", "--timeout", "0", "-o", "json")
    assert (code, err) == (124, "")
    assert [one["met"] for one in json.loads(out)] == [False]
    assert sluice("watch", "sarc")[::2] == (0, "")


def test_a_restore_is_printed_or_made(server: FinalizingServer, sluice: Sluice) -> None:
    """A dry run makes nothing, and a second command finds the resource of the first."""
    put(server, resources.ARCHIVE, "orders")
    put(server, resources.STORE, "local")
    words = ("restore", "sarc/orders", "--to", "local:out/orders", "--run", "3")
    code, out, _ = sluice(*words, "--dry-run")
    made = yaml.safe_load(out)
    assert (code, server.all(STREAM_COPY)) == (0, [])
    assert made["spec"]["source"]["archive"]["run"] == 3
    code, out, err = sluice(*words, "-o", "name")
    name = made["metadata"]["name"]
    assert (code, out) == (0, f"streamcopy.sluice.dev/{name}\n")
    assert err == f"streamcopy/{name} is made, and restores streamarchive/orders\n"
    (kept,) = server.all(STREAM_COPY)
    assert kept["spec"] == made["spec"]
    assert "exists already" in sluice(*words)[2]
    server.edit(STREAM_COPY, name, "team", status=conditions())
    assert sluice(*words, "--wait", "--quiet") == (0, "", "")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--to", "local:out"], "--to: streamarchive/orders is restored to a stream"),
        (["--to", "out/orders"], "--to: 'out/orders' is no stream and no scope"),
        (["--to", "locl:out/orders"], "Did you mean local?"),
        (["--to", "local:out/orders", "--until", "now"], "'now' is no time like"),
        (["--to", "local:out", "--seal"], "--seal is for single streams"),
        (["--to", "local:out/orders", "--dry-run", "--wait"], "--dry-run makes nothing"),
    ],
    ids=str,
)
def test_a_wrong_restore_is_refused(
    server: FinalizingServer, sluice: Sluice, words: list[str], said: str
) -> None:
    """Nothing is made."""
    put(server, resources.ARCHIVE, "orders")
    put(server, resources.STORE, "local")
    code, _, err = sluice("restore", "orders", *words)
    assert code == 2
    assert said in err
    assert server.all(STREAM_COPY) == []


def test_a_mistyped_command_is_answered_with_one_that_is_like_it(sluice: Sluice) -> None:
    """The proposal is no command that pods run."""
    code, _, err = sluice("supend", "orders")
    assert (code, "No such command 'supend'. Did you mean suspend?" in err) == (2, True)
    assert "Did you mean" not in sluice("operater")[2]


def test_the_plugin_shows_itself_as_kubectl_does(sluice: Sluice) -> None:
    """Usage lines of help and errors have its name."""
    assert "Usage: kubectl sluice get " in sluice("get", "-h", program="kubectl-sluice")[1]
    assert "Usage: kubectl sluice wait " in sluice("wait", program="kubectl-sluice")[2]
    assert "Usage: sluice wait " in sluice("wait")[2]


@pytest.mark.parametrize(
    ("result", "verdict", "code"),
    [("Passed", "True", 0), ("Failed", "False", 6), ("NotRun", "", 4)],
)
def test_the_exit_code_of_a_drill_is_its_result(
    server: FinalizingServer, sluice: Sluice, result: str, verdict: str, code: int
) -> None:
    """The output has its sentence, without control characters for the terminal."""
    weekly = resources.changed(resources.ARCHIVE, "spec.verify", {"schedule": {"cron": "@weekly"}})
    put(server, weekly, "orders")
    assert sluice("archive", "drill", "orders") == (
        0,
        "",
        "a restore drill of streamarchive/orders is requested\n",
    )
    patch = server.patch

    async def drilled(*arguments: Any) -> Any:
        body = await patch(*arguments)
        said = conditions()["conditions"][0] | {
            "type": "RestoreVerified",
            "reason": "ArchiveDamaged",
        }
        drill = {
            "result": result,
            "message": "Run 3\x1b[2J is told.",
            "lastHandledRequestedAt": body["metadata"]["annotations"][DRILL_REQUESTED_AT],
        }
        held = [said | {"status": verdict}] if verdict else []
        server.edit(
            OWN["StreamArchive"], "orders", "team", status={"drill": drill, "conditions": held}
        )
        return body

    server.patch = drilled  # type: ignore[method-assign]
    told = sluice("archive", "drill", "sarc/orders", "--wait")
    assert (told[0], told[1]) == (code, "")
    word = "Failed: ArchiveDamaged" if code == 6 else result
    assert f"streamarchive/orders: {word}: Run 3 [2J is told." in told[2]
    found = sluice("archive", "drill", "orders", "--wait", "-o", "json")
    assert (found[0], parsed(found[1])["drill"]["result"]) == (code, result)
