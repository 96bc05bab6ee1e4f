"""The check of an installation at a real API server, with the rights that the chart gives it."""

from __future__ import annotations

import os
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
import yaml

from support.command import warm
from support.kube.chart import Rendered, render
from support.search import few

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

    from localcluster import Cluster

KINDS = ("ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")


class Operator(BaseHTTPRequestHandler):
    """A stand-in for the operator's readiness probe. Requests and answers go to the server."""

    def do_GET(self) -> None:
        """Send the next of the server's answers. Repeat the last one."""
        answers = vars(self.server)["answers"]
        status, text = answers.pop(0) if len(answers) > 1 else answers[0]
        self.send_response(status)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def operator(*answers: tuple[int, str]) -> Iterator[str]:
    """Serve these answers one after the other. Yield the URL."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Operator) as server:
        vars(server)["answers"] = list(answers)
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/readyz"
        server.shutdown()


class Release:
    """The accounts and roles of a release, and the test's arguments and identity."""

    def __init__(self, kube: Cluster, folder: Path, namespaces: list[str], namespace: str) -> None:
        values = {"watch": {"namespaces": namespaces}, "rbac": {"aggregate": False}}
        self.kube = kube
        self.name = f"sluice-{uuid4().hex[:8]}"
        self.objects = render(values, release=self.name, namespace=namespace)
        (self.pod,) = self.objects.of("Pod")
        roles = Rendered(found for found in self.objects if found["kind"] in KINDS)
        self.text = yaml.safe_dump_all(roles)
        self.apply()
        account = self.pod["spec"]["serviceAccountName"]
        token = kube.kubectl(f"--namespace={namespace}", "create", "token", account).strip()
        access = yaml.safe_load(kube.kubeconfig.read_text())
        for user in access["users"]:
            user["user"] = {"token": token}
        self.kubeconfig = folder / "kubeconfig"
        self.kubeconfig.write_text(yaml.safe_dump(access))

    def check(self, probe: str, seconds: int) -> subprocess.CompletedProcess[str]:
        """Run the pod's command with the test's token."""
        _, *words = self.pod["spec"]["containers"][0]["args"]
        words[words.index("--probe") + 1] = probe
        return warm.run(
            [warm.SLUICE, *words, f"--timeout={seconds}"],
            env=os.environ | {"KUBECONFIG": str(self.kubeconfig)},
            seconds=120,
        )

    def apply(self) -> None:
        """Apply all objects, including deleted ones."""
        self.kube.kubectl("apply", "--filename=-", stdin=self.text)

    def drop(self, kind: str, name: str, namespace: str = "") -> None:
        """Delete an object of the release."""
        where = [f"--namespace={namespace}"] if namespace else []
        self.kube.kubectl(*where, "delete", kind, name)

    def remove(self) -> None:
        """Delete all objects of the release."""
        self.kube.kubectl("delete", "--ignore-not-found", "--filename=-", stdin=self.text)


@pytest.fixture(scope="module")
def namespace(kube: Cluster, definitions: list[str]) -> Iterator[str]:
    """Yield a namespace for a release."""
    name = f"installed-{uuid4().hex[:12]}"
    kube.kubectl("create", "namespace", name)
    yield name
    kube.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture(scope="module", params=few(["namespaces", "cluster"], 1))
def release(
    request: pytest.FixtureRequest,
    kube: Cluster,
    namespace: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Release]:
    """Yield the accounts of a release that serves the whole cluster, or two namespaces."""
    served = [] if request.param == "cluster" else [namespace, "default"]
    made = Release(kube, tmp_path_factory.mktemp("release"), served, namespace)
    yield made
    made.remove()


def test_a_sound_installation_passes(release: Release) -> None:
    """The check passes with its own rights, as soon as the operator is ready."""
    with operator((503, "not everything was looked at yet"), (200, "ok")) as probe:
        done = release.check(probe, 60)
    assert done.returncode == 0, done.stderr
    assert "OK: the operator is ready" in " ".join(done.stderr.split())


def test_a_missing_right_is_named(release: Release, namespace: str) -> None:
    """Without a binding, the check names the account, each right and the namespace."""
    account = f"{release.name}-operator"
    bindings = release.objects.of("RoleBinding")
    local = any(body["metadata"]["name"] == account for body in bindings)
    kind = "rolebinding" if local else "clusterrolebinding"
    release.drop(kind, account, "default" if local else "")
    with operator((200, "ok")) as probe:
        done = release.check(probe, 0)
    release.apply()
    told = " ".join(done.stderr.split())
    assert done.returncode == 4
    place = " in default" if local else ""
    user = f"system:serviceaccount:{namespace}:{account}"
    assert f"{user} may not patch streamcopies.sluice.dev/status{place}:" in told
    assert f"streamcopies.sluice.dev/status in {namespace}:" not in told
    assert "FAILED" in told


def test_a_right_in_the_operators_own_namespace_is_missed(release: Release, namespace: str) -> None:
    """The check names a missing right to the Lease, which each replica needs."""
    release.drop("rolebinding", f"{release.name}-operator-lease", namespace)
    with operator((200, "ok")) as probe:
        done = release.check(probe, 0)
    release.apply()
    told = " ".join(done.stderr.split())
    assert done.returncode == 4
    lease = f"leases.coordination.k8s.io {release.name}-operator"
    assert f"may not patch {lease} in {namespace}:" in told
    assert f"may not create leases.coordination.k8s.io in {namespace}:" in told
    assert "FAILED: 3 checks" in told


def test_an_operator_that_is_not_ready_is_named(release: Release) -> None:
    """The check shows the operator's answer without control characters, or its absence."""
    with operator((503, "still \x1b[31mlooking")) as probe:
        done = release.check(probe, 0)
    assert done.returncode == 4
    assert "the operator is not ready: still" in " ".join(done.stderr.split())
    assert "\x1b" not in done.stderr
    done = release.check(probe, 0)
    assert done.returncode == 4
    assert "does not answer at" in done.stderr


def test_the_test_may_do_nothing_else(release: Release, kube: Cluster, namespace: str) -> None:
    """The test's account may only ask about rights."""
    account = release.pod["spec"]["serviceAccountName"]
    user = f"--as=system:serviceaccount:{namespace}:{account}"
    listed = kube.kubectl(user, f"--namespace={namespace}", "auth", "can-i", "--list")
    plain = f"--as=system:serviceaccount:{namespace}:nobody"
    usual = kube.kubectl(plain, f"--namespace={namespace}", "auth", "can-i", "--list")
    more = {line.split()[0] for line in listed.splitlines()}
    more -= {line.split()[0] for line in usual.splitlines()}
    reviews = {
        "subjectaccessreviews.authorization.k8s.io",
        "localsubjectaccessreviews.authorization.k8s.io",
    }
    assert len(more) == 1
    assert more < reviews
