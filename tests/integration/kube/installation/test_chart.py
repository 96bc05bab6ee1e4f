"""The chart on a real cluster: the API server's checks, and the remains of an uninstall."""

import json
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import yaml

import genmanifests
from localcluster import Cluster, LocalClusterError
from support.kube.chart import CHART, EVERYTHING, NAMESPACE, NAMESPACED, ROOT, render, rules
from support.kube.definitions import left
from support.until import PATIENTLY

RESTRICTED = [
    f"pod-security.kubernetes.io/{mode}=restricted" for mode in ("enforce", "audit", "warn")
]
VARIANTS = {
    "as it comes": {},
    "everything": EVERYTHING,
    "two namespaces": NAMESPACED,
}
NOT_HERE = {"monitoring.coreos.com/v1"}
"""Kinds of the Prometheus operator, which the test cluster does not have."""


@pytest.fixture(scope="module")
def system(kube: Cluster) -> Iterator[str]:
    """Yield a namespace for an operator, which admits only restricted pods."""
    name = f"chart-{uuid4().hex[:12]}"
    kube.kubectl("create", "namespace", name)
    kube.kubectl("label", "namespace", name, *RESTRICTED)
    yield name
    kube.kubectl("delete", "namespace", name, "--wait=false")


def try_out(kube: Cluster, text: str) -> None:
    """Dry-run objects at the API server. Warnings count as errors."""
    words = ("apply", "--server-side", "--force-conflicts", "--dry-run=server")
    kube.kubectl(*words, "--warnings-as-errors", "--filename=-", stdin=text)


@pytest.mark.parametrize("values", VARIANTS.values(), ids=VARIANTS.keys())
def test_the_api_server_takes_every_object(
    kube: Cluster, system: str, values: dict[str, Any]
) -> None:
    """All objects of the chart are valid, and cause no warning about pod security."""
    objects = [found for found in render(values) if found["apiVersion"] not in NOT_HERE]
    for found in objects:
        if "namespace" in found["metadata"]:
            found["metadata"]["namespace"] = system
        if found["kind"] == "Pod":  # a dry run makes no account, and a pod needs an existing one
            found["spec"]["serviceAccountName"] = "default"
    try_out(kube, yaml.safe_dump_all(objects))


def test_the_api_server_takes_the_plain_manifests(kube: Cluster, system: str) -> None:
    """manifests/*.yaml are valid, and warn of nothing."""
    for name, namespace in {
        "crds.yaml": NAMESPACE,
        "install.yaml": NAMESPACE,
        "pravega-dev.yaml": "pravega-dev",
    }.items():
        text = (ROOT / "manifests" / name).read_text()
        try_out(kube, text.replace(namespace, system))


@dataclass(frozen=True)
class Release:
    """A release of the chart, with a test's kind in place of Sluice's.

    Other tests of the cluster use Sluice's CRDs, and this one must not take them over.
    """

    kube: Cluster
    namespace: str
    chart: Path
    plural: str
    group: str
    values: dict[str, Any]

    @property
    def name(self) -> str:
        """The release's name, with which its objects' names begin."""
        return f"sluice-{self.group.partition('.')[0]}"

    @property
    def crd(self) -> str:
        """The CRD's name."""
        return f"{self.plural}.{self.group}"

    def write_crd(self, *categories: str) -> None:
        """Put the CRD into the chart as the generator does."""
        schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        version = {
            "name": "v1",
            "served": True,
            "storage": True,
            "schema": {"openAPIV3Schema": schema},
        }
        crd = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": self.crd},
            "spec": {
                "group": self.group,
                "scope": "Namespaced",
                "names": {
                    "kind": "Thing",
                    "plural": self.plural,
                    "categories": list(categories),
                },
                "versions": [version],
            },
        }
        folder = self.chart / "files" / "crds"
        (folder / "things.yaml").write_text(yaml.safe_dump(left(genmanifests.kept(crd))))

    def helm(self, command: str) -> str:
        """Install or upgrade the release."""
        file = self.chart.parent / "values.yaml"
        file.write_text(yaml.safe_dump(self.values))
        where = (f"--namespace={self.namespace}", f"--values={file}")
        return self.kube.helm(command, self.name, str(self.chart), *where)

    def uninstall(self) -> None:
        """Uninstall the release without its hook, whose image does not exist."""
        where = f"--namespace={self.namespace}"
        self.kube.helm("uninstall", self.name, where, "--no-hooks", "--wait", PATIENTLY)


@pytest.fixture(scope="module")
def release(
    kube: Cluster, system: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Release]:
    """Yield an installed release that serves its own namespace; its image does not exist."""
    chart = tmp_path_factory.mktemp("chart") / "sluice"
    shutil.copytree(CHART, chart)
    shutil.rmtree(chart / "files" / "crds")
    (chart / "files" / "crds").mkdir()
    values = {
        "image": {"repository": "localhost/no-such-image", "pullPolicy": "Never"},
        "rbac": {"aggregate": False},  # has the same name in each release
        "watch": {"namespaces": [system]},
        "driver": {"namespaces": [system]},
    }
    made = Release(kube, system, chart, "things", f"t{uuid4().hex[:8]}.sluice.dev", values)
    made.write_crd()
    try:
        made.helm("install")
        yield made
    finally:
        with suppress(LocalClusterError):
            made.uninstall()


def test_the_operators_pods_are_admitted(kube: Cluster, release: Release) -> None:
    """All replicas come into being in a namespace that enforces `restricted`."""
    where = f"--namespace={release.namespace}"
    deployment = f"deployment/{release.name}-operator"
    replicas = int(kube.kubectl(where, "get", deployment, "--output=jsonpath={.spec.replicas}"))
    arrived = f"--for=jsonpath={{.status.unavailableReplicas}}={replicas}"
    kube.kubectl(where, "wait", deployment, arrived)
    pods = json.loads(kube.kubectl(where, "get", "pods", "--output=json"))["items"]
    accounts = [pod["spec"]["serviceAccountName"] for pod in pods]
    assert accounts == [f"{release.name}-operator"] * replicas


def test_the_operator_reads_no_namespace_but_its_own(kube: Cluster, release: Release) -> None:
    """The operator may read only the namespace that it serves, to check owners' namespaces."""
    user = f"--as=system:serviceaccount:{release.namespace}:{release.name}-operator"
    kube.kubectl(user, "get", "namespace", release.namespace)
    with pytest.raises(LocalClusterError, match="forbidden"):
        kube.kubectl(user, "get", "namespace", "default")


@pytest.mark.parametrize("account", ["operator", "driver"])
def test_accounts_may_do_what_the_rules_say(kube: Cluster, release: Release, account: str) -> None:
    """The API server grants each right in the namespace served, and in no other namespace."""
    name = "sluice-driver" if account == "driver" else f"{release.name}-operator"
    granted = {
        (resource if not group else f"{resource}.{group}", verb)
        for group, resource, verb, _ in rules(
            render({"driver": {"namespaces": ["demo"]}}), f"sluice-{account}"
        )
    }
    user = f"system:serviceaccount:{release.namespace}:{name}"
    assert _allowed(kube, user, release.namespace) >= granted
    # The review does not name the namespaces. One right is for kube-system.
    assert not _allowed(kube, user, "default") & (granted - {("namespaces", "get")})


@pytest.mark.parametrize(
    ("verb", "resource"),
    [
        ("list", "secrets"),
        ("watch", "secrets"),
        ("create", "pods"),
        ("create", "roles.rbac.authorization.k8s.io"),
        ("create", "serviceaccounts/token"),
        ("get", "nodes"),
        ("list", "namespaces"),
        ("list", "customresourcedefinitions.apiextensions.k8s.io"),
    ],
)
def test_the_operator_may_not(kube: Cluster, release: Release, verb: str, resource: str) -> None:
    """The API server refuses the operator all rights that it does not need."""
    user = f"system:serviceaccount:{release.namespace}:{release.name}-operator"
    with pytest.raises(LocalClusterError):  # kubectl says no by its exit status
        _can(kube, user, release.namespace, verb, resource)


def test_the_operator_reads_the_clusters_identity(kube: Cluster, release: Release) -> None:
    """An operator of one namespace may look at kube-system, and thus at its UID."""
    user = f"system:serviceaccount:{release.namespace}:{release.name}-operator"
    assert _can(kube, user, release.namespace, "get", "namespaces/kube-system") == "yes"


def test_an_uninstall_leaves_resources(kube: Cluster, release: Release) -> None:
    """Upgrades change CRDs; an uninstall keeps them and their objects, for the next install."""
    where = f"--namespace={release.namespace}"
    resource = f"{release.plural}.{release.group}"
    kube.kubectl("wait", f"crd/{release.crd}", "--for=condition=Established", PATIENTLY)
    thing = {
        "apiVersion": f"{release.group}/v1",
        "kind": "Thing",
        "metadata": {"name": "mine", "namespace": release.namespace},
    }
    kube.kubectl("create", "--filename=-", stdin=yaml.safe_dump(thing))
    uid = kube.kubectl(where, "get", resource, "mine", "--output=jsonpath={.metadata.uid}")

    release.write_crd("things-and-more")
    release.helm("upgrade")
    categories = "--output=jsonpath={.spec.names.categories}"
    assert kube.kubectl("get", "crd", release.crd, categories) == '["things-and-more"]'

    release.uninstall()
    account = f"serviceaccount/{release.name}-operator"
    assert not kube.kubectl(where, "get", account, "--ignore-not-found", "--output=name")
    assert kube.kubectl("get", "crd", release.crd, "--output=name")

    notes = release.helm("install")
    assert "helm uninstall" in notes
    assert "kubectl delete scopy,sccp,sarc,squery --all" in notes
    after = kube.kubectl(where, "get", resource, "mine", "--output=jsonpath={.metadata.uid}")
    assert after == uid


def _can(kube: Cluster, user: str, namespace: str, verb: str, resource: str) -> str:
    where = f"--namespace={namespace}"
    return kube.kubectl("auth", "can-i", verb, resource, where, f"--as={user}").strip()


def _allowed(kube: Cluster, user: str, namespace: str) -> set[tuple[str, str]]:
    """Return the resources and verbs that the API server lists for a user."""
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": namespace},
    }
    words = ("create", "--validate=false", "--filename=-", "--output=json", f"--as={user}")
    answer = json.loads(kube.kubectl(*words, stdin=json.dumps(review)))
    return {
        (resource if not group else f"{resource}.{group}", verb)
        for rule in answer["status"]["resourceRules"]
        for group in rule.get("apiGroups", [])
        for resource in rule.get("resources", [])
        for verb in rule["verbs"]
    }
