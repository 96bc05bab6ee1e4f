"""The rights in the chart's roles, and the page that gives a reason for each."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from support.kube.chart import EVERYTHING, NAMESPACE, NAMESPACED, ROOT, Rendered, render, rules

SECURITY = ROOT / "docs" / "security.md"
CLUSTER_SCOPE = {"driver": {"namespaces": ["demo"]}}

Right = tuple[str, str, str, str]


def documented(heading: str) -> list[set[Right]]:
    """Return the rights in each table of a section of docs/security.md."""
    section = SECURITY.read_text().split(f"## {heading}\n")[1].split("\n## ")[0]
    tables = re.findall(r"^\|---.*\n((?:\|.*\n)+)", section, flags=re.MULTILINE)
    return [set(_rows(table)) for table in tables]


def _rows(table: str) -> Iterator[Right]:
    for line in table.splitlines():
        group, resources, verbs, reason = (cell.strip() for cell in line.strip("|").split("|"))
        assert reason
        resources, _, only = resources.partition(", only ")
        for resource in resources.split(", "):
            for verb in verbs.split(", "):
                yield "" if group == "core" else group, resource, verb, only


@pytest.fixture(
    params=[CLUSTER_SCOPE, {**EVERYTHING, **NAMESPACED}, NAMESPACED | {"clusterID": "paris"}],
    ids=["cluster", "namespaces", "namespaces with an id"],
)
def rendered(request: pytest.FixtureRequest) -> Rendered:
    """Return the chart's objects for each way to grant rights."""
    return render(request.param)


def test_the_page_gives_a_reason_for_each_right() -> None:
    """docs/security.md lists exactly the rights of the operator and of drivers."""
    objects = render(CLUSTER_SCOPE)
    assert documented("What the operator may do") == [
        set(rules(objects, "sluice-operator")),
        set(rules(objects, "sluice-cluster-identity")),
        set(rules(objects, "sluice-operator-lease")),
    ]
    assert documented("What a driver may do") == [set(rules(objects, "sluice-driver"))]


def test_an_operator_that_holds_no_secrets_may_not_change_them() -> None:
    """With `stores.holdSecrets: false` the operator loses the right to patch Secrets only."""
    before = set(rules(render(), "sluice-operator"))
    after = set(rules(render({"stores": {"holdSecrets": False}}), "sluice-operator"))
    assert before - after == {("", "secrets", "patch", "")}
    assert after < before


def test_the_page_gives_a_reason_for_each_right_of_the_uninstall() -> None:
    """The page has a table for each policy. Its rights are the same in each scope."""
    for scope in ({}, NAMESPACED):
        assert documented("What uninstalling may do") == [
            set(rules(render({**scope, "uninstall": {"policy": policy}}), "sluice-uninstall"))
            for policy in ("refuse", "delete", "orphan")
        ]


def test_the_page_gives_a_reason_for_each_right_of_the_test() -> None:
    """The page has a table for each scope of `helm test`."""
    assert documented("What helm test may do") == [
        set(rules(render(scope), "sluice-test")) for scope in ({}, NAMESPACED)
    ]


def test_the_page_gives_a_reason_for_each_right_of_the_gateway() -> None:
    """The page has a table for rights in namespaces, and one for those in the cluster."""
    wanted = {"enabled": True, "image": "registry.example/sluice-query:1"}
    named = {"secrets": ["login"], "configMaps": ["ca"]}
    found = set(rules(render({"gateway": wanted | named}), "sluice-gateway"))
    namespaced, cluster = documented("What the gateway may do")
    assert {right[:3] for right in namespaced | cluster} == {right[:3] for right in found}
    only = {("", "secrets", "get", "login"), ("", "configmaps", "get", "ca")}
    assert {right for right in found if right[3]} == only


def test_rights_are_the_same_in_each_scope() -> None:
    """A Role in a namespace grants what the ClusterRole grants everywhere."""
    whole = set(rules(render(), "sluice-operator"))
    assert set(rules(render(NAMESPACED), "sluice-operator")) == whole


def test_nothing_is_granted_wholesale(rendered: Rendered) -> None:
    """No role has a wildcard, may list Secrets, or may gain further rights."""
    for role in [*rendered.of("Role"), *rendered.of("ClusterRole")]:
        for group, resource, verb, _ in rules(rendered, role["metadata"]["name"]):
            assert "*" not in {group, resource, verb}
            assert group != "rbac.authorization.k8s.io"
            assert verb not in {"bind", "escalate", "impersonate"}
            assert resource not in {"pods/exec", "serviceaccounts/token"}
            if resource == "secrets":
                assert verb in {"get", "patch"}


def test_an_operator_of_namespaces_has_no_rights_elsewhere() -> None:
    """Roles are in the served namespaces, and the Lease's in the operator's.

    The only ClusterRole that is bound reads the namespace kube-system, for the cluster's identity.
    """
    objects = render(NAMESPACED)
    for kind in ("Role", "RoleBinding"):
        found = [one["metadata"] for one in objects.of(kind)]
        found = [one for one in found if one["name"] != "sluice-test"]  # it asks about all of them
        lease = [one for one in found if one["name"] == "sluice-operator-lease"]
        assert [one["namespace"] for one in lease] == [NAMESPACE]
        assert {one["namespace"] for one in found if one not in lease} == {"demo", "shop"}
    (binding,) = objects.of("ClusterRoleBinding")
    assert binding["roleRef"]["name"] == "sluice-cluster-identity"
    assert list(rules(objects, "sluice-cluster-identity")) == [
        ("", "namespaces", "get", "kube-system")
    ]


def test_a_given_identity_needs_no_right_in_the_cluster() -> None:
    """With `clusterID`, an operator of namespaces needs no ClusterRoleBinding.

    The ClusterRoles of owners remain, so that an administrator can add to them.
    """
    objects = render(NAMESPACED | {"clusterID": "paris", "rbac": {"aggregate": False}})
    assert objects.of("ClusterRoleBinding") == []
    names = {role["metadata"]["name"] for role in objects.of("ClusterRole")}
    assert names == {"sluice-owner-reader", "sluice-usual-owners"}


def test_bindings_grant_the_roles_to_the_accounts(rendered: Rendered) -> None:
    """Each binding names a role and an account that the chart makes."""

    def keys(*kinds: str) -> set[tuple[str, str | None, str]]:
        return {
            (m["kind"], m["metadata"].get("namespace"), m["metadata"]["name"])
            for kind in kinds
            for m in rendered.of(kind)
        }

    roles, accounts = keys("Role", "ClusterRole"), keys("ServiceAccount")
    for binding in [*rendered.of("RoleBinding"), *rendered.of("ClusterRoleBinding")]:
        role, (subject,) = binding["roleRef"], binding["subjects"]
        namespace = binding["metadata"].get("namespace") if role["kind"] == "Role" else None
        assert (role["kind"], namespace, role["name"]) in roles
        assert ("ServiceAccount", subject["namespace"], subject["name"]) in accounts


def test_people_get_all_kinds_and_no_status() -> None:
    """`view` reads all kinds, and `edit` and `admin` write them. No role of users has a status."""
    objects = render()
    aggregated: dict[str, Any] = {
        role["metadata"]["name"]: {
            label.rpartition("aggregate-to-")[2]
            for label in role["metadata"]["labels"]
            if "aggregate-to-" in label
        }
        for role in objects.of("ClusterRole")
    }
    assert aggregated["sluice-view"] == {"view", "edit", "admin"}
    assert aggregated["sluice-edit"] == {"edit", "admin"}
    plurals = {
        crd["metadata"]["name"].partition(".")[0] for crd in objects.of("CustomResourceDefinition")
    }
    rows = ("sluice.dev", "streamqueries/results", "get", "")  # a query's data, no resource
    edit = {*rules(objects, "sluice-edit")} - {rows}
    assert edit < {*rules(objects, "sluice-edit")}
    for granted in ({*rules(objects, "sluice-view")}, edit):
        assert {resource for _, resource, _, _ in granted} == plurals
    assert {verb for *_, verb, _ in rules(objects, "sluice-view")} == {"get", "list", "watch"}
    assert not {verb for *_, verb, _ in edit} & {"get", "list", "watch"}
