"""The chart's admission policies on a real API server, by users with the chart's roles.

Each user tries each act in two namespaces: one where the policies hold, and one that the release
does not serve. Both have the same roles.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import pytest
import yaml

from localcluster import LocalClusterError
from support.cases import allowed_servers
from support.cases.resources import (
    ARCHIVE,
    BUCKET,
    COPY,
    EPHEMERAL,
    REMOVED,
    SCOPE,
    STORE,
    changed,
)
from support.cluster.outside import OUTSIDE
from support.kube.chart import render
from support.kube.objects import objects_in
from support.until import until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from localcluster import Cluster
    from support.kube.chart import Manifest, Rendered

Object = dict[str, Any]

_RBAC: Final = "rbac.authorization.k8s.io"
_ELSEWHERE: Final = {"name": "local", "namespace": "platform"}
_EVIL: Final = ("spec.pravega.controllerURI", "tcp://evil.example.com:9090")

ACTS: Final[dict[str, Object]] = {
    "copy": COPY,
    "scope": SCOPE,
    "archive": ARCHIVE,
    "ephemeral": EPHEMERAL,
    "restore": changed(
        COPY, "spec.source", {"archive": {"storeRef": {"name": "archives"}, "path": "in/orders"}}
    ),
    "parts": changed(
        changed(COPY, "spec.sources", [COPY["spec"]["source"]]), "spec.source", REMOVED
    ),
    "move": changed(COPY, "spec.sourceOnComplete", "Delete"),
    "move a scope": changed(SCOPE, "spec.sourceOnComplete", "Delete"),
    "seal": changed(changed(COPY, "spec.mode", "Continuous"), "spec.cutover", "SealAndDrain"),
    "claim": changed(
        changed(changed(EPHEMERAL, "spec.stream", REMOVED), "spec.streamPrefix", "helper-"),
        "spec.claim",
        "ExistingAndNew",
    ),
    "profile": changed(COPY, "spec.runtime", {"profile": "large"}),
    "orphan": changed(COPY, "metadata.annotations", {"sluice.dev/force-orphan": "true"}),
    "not orphan": changed(COPY, "metadata.annotations", {"sluice.dev/force-orphan": "false"}),
}

VERBS: Final = {
    "move": "remove",
    "move a scope": "remove",
    "seal": "remove",
    "claim": "remove",
    "profile": "profiles",
    "orphan": "orphan",
}
"""A word of the refusal, by the act that needs more than the verb `use`."""

MAKERS: Final = ("clerk", "tenant", "admin")
"""Users who may make resources: without `use`, with it, and with all verbs."""

OTHERS: Final = ("stranger", "driver")
"""A user of another namespace, and the account of drivers."""


@dataclass(frozen=True)
class Site:
    """A namespace with the policies, and one without.

    Attributes:
        cluster: the cluster.
        judged: the namespace where the policies hold.
        free: the namespace where they do not.
        operator: the operator's account.
    """

    cluster: Cluster
    judged: str
    free: str
    operator: str

    def user(self, name: str) -> str:
        """Return a user's name in the cluster."""
        if name == "operator":
            return self.operator
        return f"{name}-of-{self.judged}"

    def refusal(self, user: str, body: Object, namespace: str = "") -> str:
        """Return the API server's refusal to make a resource; empty if it agrees."""
        body = changed(body, "metadata.name", f"made-{uuid4().hex[:8]}")
        try:
            objects_in(self.cluster).create(
                namespace or self.judged, body, user=self.user(user), kept=False
            )
        except LocalClusterError as error:
            return str(error)
        return ""

    def change(self, user: str, kind: str, name: str, change: Object) -> str:
        """Return the API server's refusal to change a resource; empty if it agrees."""
        words = ("patch", kind, name, "--type=merge", f"--patch={yaml.safe_dump(change)}")
        there = (f"--namespace={self.judged}", f"--as={self.user(user)}", "--dry-run=server")
        try:
            self.cluster.kubectl(*there, *words)
        except LocalClusterError as error:
            return str(error)
        return ""


def roles(objects: Rendered) -> Manifest:
    """Return the rules of each user, from the chart's roles."""
    given = {
        name: objects.named("ClusterRole", f"sluice-{name}")["rules"]
        for name in ("view", "edit", "admin")
    }
    plain = [rule for rule in given["edit"] if "use" not in rule["verbs"]]
    return {
        "clerk": given["view"] + plain,
        "tenant": given["view"] + given["edit"],
        "admin": given["view"] + given["edit"] + given["admin"],
        "driver": objects.named("Role", "sluice-driver")["rules"],
    }


def granted(namespace: str, name: str, rules: list[Manifest], user: str) -> Iterator[Manifest]:
    """Yield the objects that give a user these rights in a namespace."""
    metadata = {"name": name, "namespace": namespace}
    common = {"apiVersion": f"{_RBAC}/v1", "metadata": metadata}
    yield common | {"kind": "Role", "rules": rules}
    yield common | {
        "kind": "RoleBinding",
        "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": name},
        "subjects": [{"apiGroup": _RBAC, "kind": "User", "name": user}],
    }


@pytest.fixture(scope="module")
def site(kube: Cluster, definitions: list[str]) -> Iterator[Site]:
    """Yield namespaces without an operator, with roles. The policies hold in one of them."""
    assert definitions
    release = f"sluice-{uuid4().hex[:8]}"
    judged, free, other = (f"{OUTSIDE}{uuid4().hex[:12]}" for _ in range(3))
    made = Site(kube, judged, free, f"system:serviceaccount:{judged}:{release}-operator")
    objects = render(
        {
            "admission": {"enabled": True},
            "stores": {"allowed": list(allowed_servers.PATTERNS)},
            "watch": {"namespaces": [judged, free], "excludedNamespaces": [f"{free[:-2]}*"]},
            "driver": {"namespaces": [judged]},
        },
        release=release,
        namespace=judged,
    )
    policies = [one for one in objects if one["kind"].startswith("ValidatingAdmissionPolicy")]
    rights = [one for one in objects if one["kind"] in {"Role", "RoleBinding"}]
    rights = [one for one in rights if one["metadata"]["name"] == f"{release}-operator"]
    chart = render({"admission": {"enabled": True}, "driver": {"namespaces": [judged]}})
    for name, rules in roles(chart).items():
        for namespace in (judged, free):
            rights += granted(namespace, name, rules, made.user(name))
        if name == "admin":
            rights += granted(other, name, rules, made.user("stranger"))
    for namespace in (judged, free, other):
        kube.kubectl("create", "namespace", namespace)
    text = yaml.safe_dump_all([*rights, *policies])
    try:
        kube.kubectl("apply", "--filename=-", stdin=text)
        # The API server reads its policies from a cache.
        for act in ("copy", "scope", "archive", "ephemeral"):
            until(f"{act} is judged", partial(made.refusal, "clerk", ACTS[act]))
        until("a store is judged", lambda: made.refusal("clerk", changed(STORE, *_EVIL)))
        yield made
    finally:
        gone = yaml.safe_dump_all(policies)
        kube.kubectl("delete", "--ignore-not-found", "--wait=false", "--filename=-", stdin=gone)
        for namespace in (judged, free, other):
            kube.kubectl("delete", "namespace", namespace, "--wait=false")


@pytest.mark.parametrize("act", ACTS)
def test_users_do_what_their_verbs_allow(site: Site, act: str) -> None:
    """A refusal names the missing verb and its resource."""
    found = {user: site.refusal(user, ACTS[act]) for user in MAKERS}
    assert "you may not use the StreamStores" in found["clerk"]
    assert "verb use on streamstores" in found["clerk"]
    assert found["admin"] == ""
    if act in VERBS:
        assert VERBS[act] in found["tenant"]
        assert "you may not use the StreamStores" not in found["tenant"]
    else:
        assert found["tenant"] == ""


@pytest.mark.parametrize("act", ACTS)
def test_policies_that_do_not_hold_leave_it_to_roles(site: Site, act: str) -> None:
    """The same users may do everything in a namespace that the release does not serve."""
    assert {site.refusal(user, ACTS[act], site.free) for user in MAKERS} == {""}


@pytest.mark.parametrize("act", ACTS)
def test_roles_come_first(site: Site, act: str) -> None:
    """Users of other namespaces and drivers may make nothing, with policies or without."""
    for namespace in (site.judged, site.free):
        for user in OTHERS:
            assert "cannot create resource" in site.refusal(user, ACTS[act], namespace)


def test_the_operator_is_not_asked(site: Site) -> None:
    """The policies exempt the operator, which makes only the copies of restore drills."""
    for act in ("copy", "restore", "profile"):
        assert site.refusal("operator", ACTS[act]) == ""
    for act in ("scope", "archive", "ephemeral"):
        assert "cannot create resource" in site.refusal("operator", ACTS[act])


def test_a_store_of_another_namespace_is_left_to_its_grant(site: Site) -> None:
    """A store of another namespace needs no role there. The operator checks its grant."""
    body = changed(COPY, "spec.source.storeRef", _ELSEWHERE)
    assert site.refusal("tenant", body) == ""
    assert "you may not use" in site.refusal("clerk", body), "the target is at home"
    body = changed(body, "spec.target.storeRef", _ELSEWHERE)
    assert site.refusal("clerk", body) == ""


def test_a_change_needs_rights_for_what_it_adds(site: Site) -> None:
    """A change needs rights only for added acts. So any editor may suspend a copy."""
    objects, name = objects_in(site.cluster), f"made-{uuid4().hex[:8]}"
    running = changed(COPY, "metadata.name", name)
    running = changed(running, "spec.sourceOnComplete", "Delete")
    objects.create(site.judged, changed(running, "spec.suspend", True))  # noqa: FBT003
    for user in ("clerk", "tenant", "admin", "operator"):
        assert site.change(user, "scopy", name, {"metadata": {"labels": {"seen": "yes"}}}) == ""
    for user in ("clerk", "tenant", "admin"):
        assert site.change(user, "scopy", name, {"spec": {"suspend": False}}) == ""
    live = changed(changed(ACTS["seal"], "spec.cutover", "None"), "metadata.name", f"{name}-live")
    objects.create(site.judged, live)
    seal = {"spec": {"cutover": "SealAndDrain"}}
    assert "verb remove on streamstores" in site.change("tenant", "scopy", f"{name}-live", seal)
    assert site.change("admin", "scopy", f"{name}-live", seal) == ""
    orphan = {"metadata": {"annotations": {"sluice.dev/force-orphan": "true"}}}
    assert "verb orphan on streamcopies" in site.change("tenant", "scopy", name, orphan)
    assert site.change("admin", "scopy", name, orphan) == ""


@pytest.mark.parametrize("user", ["clerk", "admin"])
def test_streamstores_have_addresses_that_the_administrator_allows(site: Site, user: str) -> None:
    """The list of addresses holds for each user. The operator uses the same list."""
    uri, s3 = "spec.pravega.controllerURI", BUCKET["spec"]["s3"]
    for server in allowed_servers.ALLOWED:
        assert site.refusal(user, changed(STORE, uri, server)) == "", server
        assert site.refusal(user, changed(STORE, uri, server), site.free) == "", server
    for server in allowed_servers.REFUSED:
        found = site.refusal(user, changed(STORE, uri, server))
        assert f"the administrator allows no store at {server}" in found, server
        assert site.refusal(user, changed(STORE, uri, server), site.free) == "", server
    for place in allowed_servers.BUCKETS_ALLOWED:
        assert site.refusal(user, changed(BUCKET, "spec.s3", s3 | place)) == "", place
    for place in allowed_servers.BUCKETS_REFUSED:
        found = site.refusal(user, changed(BUCKET, "spec.s3", s3 | place))
        assert "the administrator allows no store at" in found, place
