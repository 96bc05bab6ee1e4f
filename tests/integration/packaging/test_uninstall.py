"""The hook that Helm runs before it deletes the release."""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from sluice import cli
from sluice.administration.cleanup import drain
from sluice.administration.cleanup.drain import Drainer, DrainPolicy
from sluice.commands import uninstall
from sluice.kube.api.kinds import (
    EPHEMERAL_STREAM,
    SCOPE_COPY,
    SECRET,
    STREAM_ARCHIVE,
    STREAM_COPY,
    STREAM_QUERY,
    STREAM_STORE,
)
from sluice.kube.api.objects import (
    IN_USE_FINALIZER,
    QUERY_FINALIZER,
    STAGING_FINALIZER,
    STREAMS_FINALIZER,
)
from sluice.kube.loop.served import Served
from support.cases import resources
from support.kube.chart import EVERYTHING, NAMESPACE, NAMESPACED, Rendered, render, rules
from support.kube.finalizing import FinalizingServer

if TYPE_CHECKING:
    from sluice.kube.api.kinds import Kind, Object

POLICIES = [policy.value for policy in DrainPolicy]


class Witness(FinalizingServer):
    """A client that records the rights that its calls need."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: set[tuple[str, str, str]] = set()

    def note(self, kind: Kind, verb: str) -> None:
        """Record a call."""
        self.asked.add((kind.group, kind.plural, verb))

    async def get(self, kind: Kind, *words: Any) -> Object | None:
        """Record the call, then act as `Api.get`."""
        self.note(kind, "get")
        return await super().get(kind, *words)

    async def list(self, kind: Kind, *words: Any, **more: Any) -> list[Object]:
        """Record the call, then act as `Api.list`."""
        self.note(kind, "list")
        return await super().list(kind, *words, **more)

    async def patch(self, kind: Kind, *words: Any) -> Object | None:
        """Record the call, then act as `Api.patch`."""
        self.note(kind, "patch")
        return await super().patch(kind, *words)

    async def delete(self, kind: Kind, *words: Any, **more: Any) -> bool:
        """Record the call, then act as `Api.delete`."""
        self.note(kind, "delete")
        return await super().delete(kind, *words, **more)


def hook(**values: Any) -> Rendered:
    """Return the objects that exist only while the release is deleted."""
    return Rendered(
        found
        for found in render(values)
        if found["metadata"].get("annotations", {}).get("helm.sh/hook") == "pre-delete"
    )


def pod(objects: Rendered) -> dict[str, Any]:
    """Return the hook's pod."""
    spec: dict[str, Any] = objects.one("Job")["spec"]["template"]["spec"]
    return spec


@pytest.mark.parametrize("values", [{}, EVERYTHING, NAMESPACED], ids=["plain", "all", "some"])
def test_all_of_it_comes_and_goes_with_the_hook(values: dict[str, Any]) -> None:
    """Account and roles come first, then bindings, then the Job.

    Helm deletes all after a success.
    """
    objects = hook(**values)
    weights: dict[str, int] = {}
    for found in objects:
        notes = found["metadata"]["annotations"]
        assert found["metadata"]["name"] == "sluice-uninstall"
        assert notes["helm.sh/hook"] == "pre-delete"
        assert notes["helm.sh/hook-delete-policy"] == "before-hook-creation,hook-succeeded"
        weights[found["kind"]] = int(notes["helm.sh/hook-weight"])
    *roles, binding, job = [
        found["kind"] for found in sorted(objects, key=lambda f: weights[f["kind"]])
    ]
    assert job == "Job"
    assert binding.endswith("Binding")
    assert "ServiceAccount" in roles
    mine = {"app.kubernetes.io/component": "uninstall"}.items()
    others = [found for found in render(values) if found not in objects]
    assert not [found for found in others if mine <= found["metadata"]["labels"].items()]


def test_it_is_tried_once_and_tells_why_it_failed() -> None:
    """The hook runs once.

    Helm prints a failed Job's log, and the pod's message is the log's end.
    """
    job = hook().one("Job")
    assert job["metadata"]["annotations"]["helm.sh/hook-output-log-policy"] == "hook-failed"
    assert job["spec"]["backoffLimit"] == 0
    # After this time Kubernetes deletes the Job and its pod, also after a rollback. Until then
    # its log can be read.
    assert job["spec"]["ttlSecondsAfterFinished"] == 3600
    assert pod(hook())["restartPolicy"] == "Never"
    (container,) = pod(hook())["containers"]
    assert container["terminationMessagePolicy"] == "FallbackToLogsOnError"


def test_the_pod_is_restricted() -> None:
    """The hook's pod has the operator's image, place and confinement, and an account of its own."""
    values = {
        "operator": {"nodeSelector": {"kubernetes.io/os": "linux"}},
        "imagePullSecrets": [{"name": "registry"}],
    }
    spec, operator = pod(hook(**values)), render(values).pod["spec"]
    for name in ("securityContext", "nodeSelector", "imagePullSecrets", "enableServiceLinks"):
        assert spec[name] == operator[name]
    (container,) = spec["containers"]
    for name in ("securityContext", "image", "imagePullPolicy", "env"):
        assert container[name] == operator["containers"][0][name]
    assert container["volumeMounts"] == [{"name": "tmp", "mountPath": "/tmp"}]  # noqa: S108
    assert set(container["resources"]) == {"requests", "limits"}
    assert spec["automountServiceAccountToken"] is True
    assert spec["serviceAccountName"] == "sluice-uninstall"


@pytest.mark.parametrize("policy", POLICIES)
def test_the_program_takes_its_arguments(monkeypatch: pytest.MonkeyPatch, policy: str) -> None:
    """The hook drains the served namespaces by the policy.

    It ends 30 s before the Job's deadline.
    """
    watch = {**NAMESPACED["watch"], "excludedNamespaces": ["shop", "team-*"]}
    values = {"watch": watch, "uninstall": {"policy": policy, "timeoutSeconds": 600}}
    given: list[Any] = []

    async def drained(*words: Any) -> list[Any]:
        given.extend(words)
        return []

    monkeypatch.setattr(uninstall, "_drain", drained)
    job = hook(**values).one("Job")
    (container,) = pod(hook(**values))["containers"]
    program, *arguments = container["args"]
    assert program == "sluice"
    done = CliRunner().invoke(cli.cli, arguments)
    assert done.exit_code == 0, done.output
    assert given == [policy, ("demo", "shop"), ("shop", "team-*"), 570.0]
    assert job["spec"]["activeDeadlineSeconds"] == 600


def test_helm_waits_longer_than_the_job_runs() -> None:
    """By default the Job ends within Helm's five minutes for a hook, and the policy is `refuse`."""
    assert hook().one("Job")["spec"]["activeDeadlineSeconds"] < 300
    assert pod(hook())["containers"][0]["args"][2:4] == ["--policy", "refuse"]


@pytest.mark.parametrize("policy", POLICIES)
def test_rights_are_what_the_policy_takes(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """For each policy, the hook's role has exactly the rights that its calls need."""
    # Each reading of the clock adds a second, so that timeouts do not depend on the machine.
    monkeypatch.setattr(drain, "_now", itertools.count().__next__)
    monkeypatch.setattr(drain, "POLL_SECONDS", 0)
    server = Witness()
    for kind, body, finalizer in (
        (EPHEMERAL_STREAM, resources.EPHEMERAL, STREAMS_FINALIZER),
        (STREAM_COPY, resources.COPY, STAGING_FINALIZER),
        (SCOPE_COPY, resources.SCOPE, STAGING_FINALIZER),
        (STREAM_ARCHIVE, resources.ARCHIVE, STAGING_FINALIZER),
        (STREAM_QUERY, resources.QUERY, QUERY_FINALIZER),
    ):
        # No operator runs here that would remove finalizers, so deletions start without them.
        held = [] if policy == "delete" else [finalizer]
        for name in ("one", "two"):
            found = resources.changed(body, "metadata.finalizers", held)
            server.put(kind, resources.changed(found, "metadata.name", name))
    auth = {"basic": {"secretRef": {"name": "login"}}}
    store = resources.changed(resources.STORE, "metadata.finalizers", [IN_USE_FINALIZER])
    server.put(STREAM_STORE, resources.changed(store, "spec.pravega.auth", auth))
    server.put(SECRET, {"metadata": {"name": "login", "finalizers": [IN_USE_FINALIZER]}})
    work = Drainer(server.api, Served(), timeout=20, say=lambda _: None)
    left = asyncio.run(work.run(DrainPolicy(policy)))
    if policy == "refuse":
        for holder in left:
            server.free(holder.kind, holder.name, holder.finalizer)
        asyncio.run(work.run(DrainPolicy(policy)))
    granted = {right[:3] for right in rules(hook(uninstall={"policy": policy}), "sluice-uninstall")}
    assert granted == server.asked


def test_an_operator_of_namespaces_leaves_others_alone() -> None:
    """The hook's roles are in the served namespaces, and its Job is in the release's."""
    objects = hook(**NAMESPACED)
    assert objects.of("ClusterRole") == objects.of("ClusterRoleBinding") == []
    for kind in ("Role", "RoleBinding"):
        assert {found["metadata"]["namespace"] for found in objects.of(kind)} == {"demo", "shop"}
    assert objects.one("Job")["metadata"]["namespace"] == NAMESPACE
