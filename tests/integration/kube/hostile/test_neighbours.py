"""A hostile tenant learns nothing of a neighbour's workloads and StreamStores."""

from __future__ import annotations

import json
import re
from itertools import product
from typing import TYPE_CHECKING, Any, Final

import pytest
import yaml

from sluice.kube.api.objects import REQUESTED_AT, STAGING_FINALIZER, STREAMS_FINALIZER
from support.search import few
from support.tenants.evil import LOGIN
from support.tenants.evil_resources import MAKES, helper, store
from support.until import until

if TYPE_CHECKING:
    from support.tenants.evil import Evil, Object

pytestmark = pytest.mark.timeout(400)


def _owned(name: str, *, owner: str, namespace: str) -> Object:
    found = {"apiVersion": "v1", "kind": "ConfigMap", "name": owner, "namespace": namespace}
    made = helper(name, "own")
    made["spec"] |= {"stream": name, "owners": [found], "tracking": "Observe"}
    return made


def test_nothing_is_told_of_a_neighbours_workloads(evil: Evil) -> None:
    """The status is the same whether the neighbour's owner or namespace exists or not."""
    owners = {
        "there": ("kube-root-ca.crt", evil.victim),
        "not-there": ("no-such-thing", evil.victim),
        "nowhere": ("no-such-thing", f"{evil.victim}-none"),
    }
    evil.make(store("own", evil.stranger.uri, secret="mine"))  # noqa: S106 - its name
    said = set()
    for name, (owner, namespace) in owners.items():
        evil.make(_owned(name, owner=owner, namespace=namespace))
        evil.look("ephemeralstream", name)
        found = evil.get("ephemeralstream", name)
        assert found is not None
        ready = next(c for c in found["status"]["conditions"] if c["type"] == "Ready")
        assert "owners" not in found["status"] or not any(
            one.get("uid") for one in found["status"]["owners"]
        )
        said.add((ready["reason"], ready["message"].replace(f"{namespace}", "NAMESPACE")))
    assert len(said) == 1
    assert said.pop()[0] == "AccessDenied"


def _neighbours(evil: Evil, name: str, to: str) -> Object:
    """Return a StreamStore of the neighbour, with a login, that is shared with a namespace."""
    body = store(name, secret=LOGIN, namespace=evil.victim)
    grant = {"selector": {"matchLabels": {"kubernetes.io/metadata.name": to}}}
    body["spec"]["access"] = {"sharedWith": [grant]}
    return body


def _naming(evil: Evil, kind: str, name: str, named: str, **meta: Any) -> Object:
    """Return a tenant's resource that names a StreamStore of the neighbour."""
    made = {**MAKES, "ephemeralstream": helper}
    text = json.dumps(made[kind](name, **meta))
    reference = json.dumps({"name": named, "namespace": evil.victim})
    body: Object = json.loads(re.sub(r'(?<="storeRef": )\{[^}]*\}', reference, text))
    return body


_OWN: Final = re.compile(
    r"\d{4}-\d\d-\d\dT[\d:]*Z|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{8,}"
)
"""Times, UIDs and hashes, which differ from resource to resource."""

PLOYS: Final[dict[str, Object]] = {
    "plain": {},
    "finalizers": {"finalizers": [STAGING_FINALIZER, STREAMS_FINALIZER]},
    "asked": {"annotations": {REQUESTED_AT: "now"}},
}
NAMING: Final = (*MAKES, "ephemeralstream")
"""The kinds that name a StreamStore."""


@pytest.mark.parametrize(
    ("kind", "ploy"),
    few(product(NAMING, PLOYS), [*product(["streamcopy"], PLOYS), *product(NAMING, ["plain"])]),
)
def test_whether_a_neighbour_has_a_store_is_told_to_none_whom_it_does_not_admit(
    evil: Evil, kind: str, ploy: str
) -> None:
    """An unshared store and a missing one give the same status, and neither is held."""
    theirs = _neighbours(evil, "hidden", to="somebody-else")
    evil.cluster.kubectl("apply", "--filename=-", stdin=yaml.safe_dump(theirs))
    said = []
    for number, named in enumerate(("hidden", "no-such")):
        name = f"naming-{ploy}-{number}"
        evil.make(_naming(evil, kind, name, named, **PLOYS[ploy]))
        evil.look(kind, name)
        evil.act("annotate", kind, name, "looked=again")
        found = evil.get(kind, name)
        assert found is not None
        text = json.dumps(found["status"]).replace(name, "NAME").replace(named, "STORE")
        said.append(_OWN.sub("", text))
        assert "StoreNotShared" in text
        evil.delete(kind, name)
    assert said[0] == said[1]
    hidden = evil.get("streamstore", "hidden", evil.victim)
    assert hidden is not None
    assert "finalizers" not in hidden["metadata"]
    assert not hidden.get("status", {}).get("inUseBy")


@pytest.mark.parametrize("kind", NAMING)
def test_a_login_of_a_shared_store_is_nowhere_in_the_tenants_namespace(
    evil: Evil, kind: str
) -> None:
    """The tenant's namespace gets no Secret and no Job of a shared store with a login."""
    theirs = _neighbours(evil, "shared", to=evil.namespace)
    evil.cluster.kubectl("apply", "--filename=-", stdin=yaml.safe_dump(theirs))
    jobs = evil.act("get", "jobs,secrets", "--output=name")
    evil.make(_naming(evil, kind, "sharing", "shared"))
    wanted = "StoreNotReady" if kind == "ephemeralstream" else "LoginNotShared"

    def said() -> bool:
        return wanted in json.dumps((evil.get(kind, "sharing") or {}).get("status", {}))

    until(f"{kind} is told {wanted}", said)
    evil.act("delete", kind, "sharing")
    assert evil.act("get", "jobs,secrets", "--output=name") == jobs
