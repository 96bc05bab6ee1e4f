"""Kubernetes' refusals to a hostile tenant, by the rights of `edit` and by Sluice's definitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from localcluster import LocalClusterError
from support.tenants.evil import LOGIN, OURS
from support.tenants.evil_resources import archive, copy, resource, scope, store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.tenants.evil import Evil, Object

pytestmark = pytest.mark.timeout(400)

NAMES: Final = {
    "parent": "..",
    "self": ".",
    "escaped parent": "%2e%2e",
    "way to a neighbour": f"../../victim/secrets/{LOGIN}",
    "escaped way": f"..%2f..%2fvictim%2fsecrets%2f{LOGIN}",
    "slash": "a/b",
    "query": "a?b",
    "fragment": "a#b",
    "line": "a\nb",
    "unicode": "übel",
    "full-width dots": "\uff0e\uff0e",
    "300 characters": "a" * 300,
    "upper case": "Upper",
    "empty": "",
}


def _status(plural: str) -> tuple[str, ...]:
    path = f"/apis/sluice.dev/v1alpha1/namespaces/EVIL/{plural}/x/status"
    return ("replace", f"--raw={path}", "--filename=-")


FORBIDDEN: Final[dict[str, tuple[str, ...]]] = {
    "reads the Secret": ("get", "secret", LOGIN, "--namespace=VICTIM"),
    "lists Secrets": ("get", "secrets", "--namespace=VICTIM"),
    "lists Secrets of all": ("get", "secrets", "--all-namespaces"),
    "reads ConfigMaps": ("get", "configmaps", "--namespace=VICTIM"),
    "reads stores": ("get", "streamstores", "--namespace=VICTIM"),
    "deletes the Secret": ("delete", "secret", LOGIN, "--namespace=VICTIM"),
    "labels his namespace": ("label", "namespace", "EVIL", "team=trusted"),
    "makes a Job there": ("create", "job", "x", "--image=x", "--namespace=VICTIM"),
    "makes himself an admin": ("create", "clusterrolebinding", "x", "--clusterrole=admin"),
    "deletes definitions": ("delete", "crd", "streamstores.sluice.dev"),
    **{f"writes the status of {plural}": _status(plural) for plural in OURS},
}


@pytest.mark.parametrize("act", FORBIDDEN)
def test_what_the_rights_of_a_tenant_do_not_give(evil: Evil, act: str) -> None:
    """A tenant can write neither statuses nor objects of neighbours."""
    places = {"EVIL": evil.namespace, "VICTIM": evil.victim}
    words = list(FORBIDDEN[act])
    for place, name in places.items():
        words = [word.replace(place, name) for word in words]
    with pytest.raises(LocalClusterError, match=r"(?i)forbidden"):
        evil.act(*words, stdin="{}")


def _s3(**more: object) -> Object:
    return resource("StreamStore", "bad", {"s3": {"bucket": "abc", **more}})


def _refused() -> Iterator[tuple[str, Object]]:
    for what, name in NAMES.items():
        yield f"{what} as the Secret of a store", store("bad", secret=name)
        yield f"{what} as a copy's store", copy("bad", name)
        yield f"{what} as an archive's path", archive("bad", path=f"{name}/..")
    way = NAMES["way to a neighbour"]
    yield "a way as a bucket's Secret", _s3(credentialsSecretRef={"name": way})
    yield "a way as a bundle", _s3(caBundleRef={"kind": "Secret", "name": way, "key": "ca"})
    yield "a way as a bundle's key", _s3(caBundleRef={"kind": "Secret", "name": "a", "key": way})
    yield "a way as a claim", resource("StreamStore", "bad", {"volume": {"claimName": way}})
    yield "a way as the store of a scope", scope("bad", way)
    for folder in ("data", "events", "runs", "heads", "leases", "work"):
        yield f"a folder called {folder}", archive("bad", path=f"a/{folder}")
    for uri in ("file:///etc/passwd", "http://h:1", "tcp://u:p@h:1", "tcp://h:1/..", "tcp://h:1#"):
        yield f"the address {uri}", store("bad", uri)


REFUSED: Final = dict(_refused())


@pytest.mark.parametrize("act", REFUSED)
def test_names_addresses_and_folders_that_definitions_refuse(evil: Evil, act: str) -> None:
    """The definitions refuse bad names, addresses and folders before the operator sees them."""
    with pytest.raises(LocalClusterError, match="is invalid"):
        evil.make(REFUSED[act])
