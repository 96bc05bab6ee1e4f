"""The command line's verbs at a real API server, as users run them."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any, Final, Protocol

import pytest
import yaml

from sluice.core.reconcile.shared.jobs import job_name
from sluice.kube.api.names import UID_LABEL
from support.cases import resources
from support.cluster.outside import nobody_else
from support.command import warm
from support.kube.apply import Applier
from support.until import PATIENTLY

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

    from localcluster import Cluster

    Object = dict[str, Any]

PROGRAM: Final = "import sys; from sluice.cli import main; sys.argv[0] = 'sluice'; main()"
SMALL_PAGES: Final = "from sluice.kube.api import client; client.PAGE = 2; " + PROGRAM
NOBODY: Final = {
    "schedulerName": "nobody",  # the pod stays pending
    "restartPolicy": "Never",
    "containers": [{"name": "driver", "image": "none.invalid/none"}],
}


class Sluice(Protocol):
    """A run of the command line in the test's namespace."""

    def __call__(
        self, *words: str, program: str = "", kubeconfig: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run `sluice` with these words to its end."""
        ...


@pytest.fixture
def team(kube: Cluster, definitions: list[str], outside: str) -> Iterator[Applier]:
    """Yield a client in a namespace that no operator serves."""
    assert definitions
    with nobody_else(kube):
        yield Applier(kube, outside)


@pytest.fixture
def sluice(team: Applier) -> Sluice:
    """Return a function that runs the command in that namespace."""

    def run(
        *words: str, program: str = "", kubeconfig: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {"KUBECONFIG": str(kubeconfig or team.cluster.kubeconfig)}
        own = [sys.executable, "-c", program] if program else [warm.SLUICE]
        return warm.run([*own, *words, f"--namespace={team.namespace}"], env=environment)

    return run


def copy_named(name: str, **labels: str) -> Object:
    """Return a copy that waits for a user."""
    meta = {"name": name, "labels": labels}
    body = resources.changed(resources.COPY, "metadata", meta)
    return resources.changed(body, "spec.suspend", value=True)


def ready(reason: str, status: str, *others: str) -> Object:
    """Return a status with conditions, of the first generation."""
    common = {
        "reason": reason,
        "message": f"It is {reason}.",
        "observedGeneration": 1,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    found = [{"type": "Ready", "status": status, **common}]
    found += [{"type": one, "status": "True", **common} for one in others]
    progress = {"bytes": 42, "totalBytes": 100, "percent": 42, "summary": "42%", "rate": "7B/s"}
    return {"conditions": found, "progress": progress | {"bytesPerSecond": 7}, "attempts": 1}


def cells(table: str) -> list[list[str]]:
    """Return the words of a table without the age, which changes."""
    rows = [line.split() for line in table.splitlines()]
    age = rows[0].index("AGE")
    return [row[:age] + row[age + 1 :] for row in rows]


def test_tables_are_those_of_kubectl(team: Applier, sluice: Sluice) -> None:
    """Tables have kubectl's columns and cells: plain, wide, by label, in pages, of one name."""
    for name in ("a", "b", "c"):
        team.apply(copy_named(name, app="shop" if name == "a" else "crm"))
        team.write_status("streamcopies", name, ready("Copying", "Unknown") | {"source": "orders"})
    for words in ([], ["-o", "wide"], ["-l", "app=crm"], ["b"]):
        mine = sluice("get", "scopy", *words, program=SMALL_PAGES)
        assert (mine.returncode, mine.stderr) == (0, "")
        assert cells(mine.stdout) == cells(team.run("get", "scopy", *words))
    names = sluice("get", "streamcopies,sst", "-o", "name", program=SMALL_PAGES)
    assert names.stdout == team.run("get", "streamcopies,sst", "-o", "name")
    body = json.loads(sluice("get", "scopy/a", "-o", "json").stdout)
    assert body == json.loads(team.run("get", "scopy", "a", "-o", "json"))


def test_verbs_change_resources_and_print_them(team: Applier, sluice: Sluice) -> None:
    """A verb prints the stored resource. For a wrong name it suggests a similar one."""
    team.apply(copy_named("orders"))
    resumed = yaml.safe_load(sluice("resume", "orders", "-o", "yaml").stdout)
    assert resumed["spec"]["suspend"] is False
    assert json.loads(team.get("streamcopies", "orders", "-o", "json")) == resumed
    wrong = sluice("suspend", "order", "--quiet")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "Did you mean orders?" in wrong.stderr


def test_a_restore_is_taken_by_the_api_server_once(team: Applier, sluice: Sluice) -> None:
    """A restore is created once. A second command finds the stored resource."""
    team.apply(resources.STORE)
    team.apply(resources.ARCHIVE)
    to = {"archive": {"storeRef": {"name": "archives"}, "path": "shop"}}
    team.apply(resources.changed(resources.SCOPE, "spec.target", to))
    stream = ("restore", "sarc/orders", "--to", "local:out/orders", "--append", "--create-scope")
    scope = ("restore", "sccp/shop", "--to", "local:out", "--until", "2026-05-04T12:00:00Z")
    for words in (stream, scope):
        dry = yaml.safe_load(sluice(*words, "--dry-run", "-o", "yaml").stdout)
        made = sluice(*words, "-o", "json")
        assert (made.returncode, "is made" in made.stderr) == (0, True)
        stored = json.loads(made.stdout)
        assert stored["spec"]["source"] == dry["spec"]["source"]
        again = sluice(*words)
        assert (again.returncode, "exists already" in again.stderr) == (0, True)
    other = sluice(*stream, "--run", "3", "--name", stored["metadata"]["name"])
    assert other.returncode == 0  # a StreamCopy may have the name of a ScopeCopy
    taken = sluice(*stream, "--name", stored["metadata"]["name"])
    assert (taken.returncode, "is not this restore" in taken.stderr) == (2, True)


def owner(kind: str, version: str, name: str, uid: str) -> Object:
    """Return a reference to a controller."""
    return {"apiVersion": version, "kind": kind, "name": name, "uid": uid, "controller": True}


def test_a_description_has_jobs_and_pods_by_their_owners(team: Applier, sluice: Sluice) -> None:
    """A description shows only Jobs and pods with the right owner, and reads only their logs."""
    body = team.apply(copy_named("orders"))
    team.write_status("streamcopies", "orders", ready("Copying", "Unknown", "Reconciling"))
    uid = body["metadata"]["uid"]
    labels = {UID_LABEL: uid}
    name = job_name(uid, 1)
    meta = {"name": name, "labels": labels}
    template = {"metadata": {"labels": labels}, "spec": NOBODY}
    mine = owner("StreamCopy", "sluice.dev/v1alpha1", "orders", uid)
    job = {"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": template}}
    team.apply(job | {"metadata": meta | {"ownerReferences": [mine]}})
    team.apply(job | {"metadata": meta | {"name": job_name(uid, 2)}})
    forged = {"name": "forged", "labels": labels}
    team.apply({"apiVersion": "v1", "kind": "Pod", "metadata": forged, "spec": NOBODY})
    event = {"involvedObject": {"kind": "StreamCopy", "name": "orders", "uid": uid}}
    event["involvedObject"]["namespace"] = team.namespace
    team.apply(
        {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "type": "Normal", **event}
        | {"reason": "Starting", "message": "It starts.\x1b[2J", "count": 3}
        | {"lastTimestamp": "2026-01-01T00:00:00Z"}
    )
    team.run("wait", f"job/{name}", "--for=jsonpath={.status.active}=1", PATIENTLY)
    said = sluice("describe", "orders")
    assert (said.returncode, said.stderr) == (0, "")
    pods = said.stdout.partition("Jobs and pods\n")[2].partition("Events\n")[0].splitlines()
    assert [line.split()[:2] for line in pods][1] == [f"job/{name}", "Active"]
    assert pods[2].split()[0].startswith(f"pod/{name}-")
    assert len(pods) == 3
    assert "Normal   Starting   3       It starts. [2J" in said.stdout
    assert said.stdout.endswith("  sluice watch streamcopy/orders shows how it goes on.\n")
    log = sluice("logs", "orders")
    assert (log.returncode, log.stdout) == (2, "")
    assert "has not started" in log.stderr
    assert "forged" not in log.stderr
    assert "no driver's pod of attempt 2" in sluice("logs", "orders", "--attempt", "2").stderr


def test_a_watch_ends_with_the_worst_code(team: Applier, sluice: Sluice) -> None:
    """A watch ends once all resources are at rest, with their reasons and the worst exit code."""
    for name, status in (
        ("done", ready("Copied", "True")),
        ("lost", ready("SourceNotFound", "False", "Stalled")),
        ("held", ready("Suspended", "Unknown", "Suspended")),
    ):
        team.apply(copy_named(name))
        team.write_status("streamcopies", name, status)
    ended = sluice("watch")
    assert ended.returncode == 124
    assert sorted(ended.stdout.splitlines()) == [
        "streamcopy/done  Copied  42%  42 B/100 B",
        "streamcopy/held  Suspended  42%  42 B/100 B",
        "streamcopy/lost  SourceNotFound  42%  42 B/100 B",
    ]
    assert "streamcopy/held is suspended" in ended.stderr
    assert "SourceNotFound: It is SourceNotFound." in ended.stderr
    assert sluice("watch", "scopy/done", "--quiet").returncode == 0
    assert sluice("watch", "scopy/lost", "scopy/done", "--quiet").returncode == 2


def test_users_without_a_cluster_or_rights_are_told_what_to_do(
    team: Applier, sluice: Sluice, tmp_path: Path
) -> None:
    """Without a cluster or rights, the exit code is that of infrastructure, with a remedy."""
    none = sluice("get", "scopy", kubeconfig=tmp_path / "none")
    assert (none.returncode, "set KUBECONFIG" in none.stderr) == (4, True)
    access = yaml.safe_load(team.cluster.kubeconfig.read_text())
    away = tmp_path / "away"
    access["clusters"][0]["cluster"] |= {"server": "https://127.0.0.1:1"}
    away.write_text(yaml.safe_dump(access))
    gone = sluice("get", "scopy", kubeconfig=away)
    assert (gone.returncode, "Check that the cluster runs" in gone.stderr) == (4, True)
    team.run("create", "serviceaccount", "guest")
    token = team.run("create", "token", "guest").strip()
    access = yaml.safe_load(team.cluster.kubeconfig.read_text())
    access["users"][0]["user"] = {"token": token}
    guest = tmp_path / "guest"
    guest.write_text(yaml.safe_dump(access))
    for words in (["get", "scopy"], ["describe", "orders"], ["watch"], ["wait", "scopy/orders"]):
        refused = sluice(*words, kubeconfig=guest)
        assert refused.returncode == 4
        assert "cannot" in refused.stderr
        assert "kubectl auth can-i --list" in refused.stderr


def test_names_are_completed_from_the_cluster(team: Applier, sluice: Sluice) -> None:
    """Names are completed from the cluster, by kubectl's protocol."""
    team.apply(copy_named("orders"))
    program = f"import sys; sys.argv[1:] = ['wait', sys.argv[-1], 'scopy/']; {COMPLETE}"
    assert sluice(program=program).stdout == "scopy/orders\n:4\n"


COMPLETE: Final = "from sluice.cli import complete_for_kubectl; complete_for_kubectl()"
