"""What a tenant who means ill may do with the rights of `edit`, at a real API server and operator.

The operator runs with all rights, so what it refuses it refuses by itself.
"""

from __future__ import annotations

import base64
import json
import re
from typing import TYPE_CHECKING, Any, Final

import pytest
import yaml

from sluice.core.reconcile.copies.statuses.base import job_name, plan_name
from sluice.core.values.model import StoreAddress
from sluice.core.workloads.plan import StreamCopyPlan
from sluice.kube.api.names import ATTEMPT_LABEL, child_labels, controls_name
from sluice.kube.api.objects import (
    FORCE_ORPHAN,
    IN_USE_FINALIZER,
    REQUESTED_AT,
    STAGING_FINALIZER,
    STREAMS_FINALIZER,
)
from support.cluster.evil import LOGIN, OURS, PRECIOUS, plotted, resource
from support.cluster.operator_process import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from localcluster import Cluster
    from support.cluster.evil import Evil, Object

pytestmark = pytest.mark.timeout(400)

SECONDS: Final = 60.0
HELD: Final = "sluice.dev/held-secret"
"""What versions before kept in an annotation."""

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


@pytest.fixture(scope="module")
def evil(
    kube: Cluster, definitions: list[str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Evil]:
    """Gives the scene that all acts are played in."""
    assert definitions
    with plotted(kube, tmp_path_factory.mktemp("evil")) as scene:
        yield scene


@pytest.fixture(autouse=True)
def _nothing_of_the_neighbours(evil: Evil) -> Iterator[None]:
    """Compares after each act: the neighbour's Secret is as it was, and is told to nobody."""
    before, heard = evil.login(), len(evil.hidden.heard)
    yield
    assert evil.login() == before
    told = evil.told()
    assert not [one for one in evil.tells() if one in told]
    assert evil.hidden.heard[heard:] == []


# -- what Kubernetes refuses, by the rights that the chart gives and by our definitions


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
    """Statuses are the operator's word, and neighbours' objects are the neighbours'."""
    places = {"EVIL": evil.namespace, "VICTIM": evil.victim}
    words = list(FORBIDDEN[act])
    for place, name in places.items():
        words = [word.replace(place, name) for word in words]
    assert "forbidden" in evil.refusal(*words, stdin="{}").lower()


def _store(name: str, **pravega: Any) -> Object:
    return resource("StreamStore", name, {"pravega": pravega})


def _logs_in(secret: str, uri: str = "tcp://127.0.0.1:9") -> Object:
    return _store("bad", controllerURI=uri, auth={"basic": {"secretRef": {"name": secret}}})


def _copy(name: str, store: str = "none", **meta: Any) -> Object:
    source, target = (
        {"storeRef": {"name": store}, "scope": "a", "stream": stream} for stream in ("b", "c")
    )
    return resource("StreamCopy", name, {"source": source, "target": target}, **meta)


def _scope(name: str, store: str = "none", **meta: Any) -> Object:
    source, target = ({"storeRef": {"name": store}, "scope": scope} for scope in ("a", "b"))
    return resource("ScopeCopy", name, {"source": source, "target": target}, **meta)


def _archive(name: str, path: str = "a", store: str = "none", **meta: Any) -> Object:
    spec = {
        "source": {"storeRef": {"name": store}, "scope": "a", "stream": "b"},
        "destination": {"storeRef": {"name": store}, "path": path},
    }
    return resource("StreamArchive", name, spec, **meta)


def _s3(**more: Any) -> Object:
    return resource("StreamStore", "bad", {"s3": {"bucket": "abc", **more}})


def _refused() -> Iterator[tuple[str, Object]]:
    for what, name in NAMES.items():
        yield f"{what} as the Secret of a store", _logs_in(name)
        yield f"{what} as a copy's store", _copy("bad", name)
        yield f"{what} as an archive's path", _archive("bad", f"{name}/..")
    way = NAMES["way to a neighbour"]
    yield "a way as a bucket's Secret", _s3(credentialsSecretRef={"name": way})
    yield "a way as a bundle", _s3(caBundleRef={"kind": "Secret", "name": way, "key": "ca"})
    yield "a way as a bundle's key", _s3(caBundleRef={"kind": "Secret", "name": "a", "key": way})
    yield "a way as a claim", resource("StreamStore", "bad", {"volume": {"claimName": way}})
    yield "a way as the store of a scope", _scope("bad", way)
    for folder in ("data", "events", "runs", "heads", "leases", "work"):
        yield f"a folder called {folder}", _archive("bad", f"a/{folder}")
    for uri in ("file:///etc/passwd", "http://h:1", "tcp://u:p@h:1", "tcp://h:1/..", "tcp://h:1#"):
        yield f"the address {uri}", _store("bad", controllerURI=uri)


REFUSED: Final = dict(_refused())


@pytest.mark.parametrize("act", REFUSED)
def test_names_addresses_and_folders_that_definitions_refuse(evil: Evil, act: str) -> None:
    """No resource with such a field ever gets as far as the operator."""
    said = evil.refusal("create", "--filename=-", stdin=yaml.safe_dump(REFUSED[act]))
    assert "is invalid" in said


# -- what Kubernetes takes, and the operator does not fall for


def _seen(evil: Evil, kind: str, name: str) -> bool:
    """Whether the operator has looked at a resource as it is now, or has let it go."""
    found = evil.get(kind, name)
    if found is None:
        return True
    now = found["metadata"]["generation"]
    conditions = found.get("status", {}).get("conditions", [])
    return any(one.get("observedGeneration") == now for one in conditions)


def _look(evil: Evil, kind: str, name: str) -> None:
    until(f"{kind}/{name} was looked at", lambda: _seen(evil, kind, name), SECONDS)


def test_the_stranger_hears_what_tenants_send_him_themselves(evil: Evil) -> None:
    """A tenant's own Secret goes where his own StreamStore says, so this would see others'."""
    evil.make({**_logs_in("mine", evil.stranger.uri), "metadata": {"name": "own"}})
    until("he hears it", lambda: "open-sesame" in str(evil.stranger.heard), SECONDS)


def test_a_secret_is_looked_for_in_the_namespace_of_its_store_only(evil: Evil) -> None:
    """That a neighbour has one of this name makes no difference."""
    evil.make({**_logs_in(LOGIN, evil.hidden.uri), "metadata": {"name": "namesake"}})
    _look(evil, "streamstore", "namesake")
    found = evil.get("streamstore", "namesake")
    assert found is not None
    assert "SecretNotFound" in json.dumps(found["status"])


WAYS: Final = ["WAY", "../secrets/precious", "%2e%2e/secrets", PRECIOUS, "", "x" * 300]


@pytest.mark.parametrize("number", range(len(WAYS)))
def test_an_annotation_lets_no_secret_go(evil: Evil, number: int) -> None:
    """Which Secrets a StreamStore holds is known from its status."""
    name, held = f"holder-{number}", WAYS[number].replace("WAY", evil.way)
    meta = {"name": name, "finalizers": [IN_USE_FINALIZER], "annotations": {HELD: held}}
    evil.make({**_store(name, controllerURI=evil.stranger.uri), "metadata": meta})
    evil.act("delete", "streamstore", name, "--wait=false")
    until("it goes", lambda: evil.get("streamstore", name) is None, SECONDS)
    _is_held(evil)


def test_a_status_that_comes_with_a_new_store_lets_no_secret_go(evil: Evil) -> None:
    """The API server drops it."""
    meta = {"name": "stated", "finalizers": [IN_USE_FINALIZER]}
    status = {"heldSecrets": [PRECIOUS]}
    made = {**_store("stated", controllerURI=evil.stranger.uri), "metadata": meta, "status": status}
    evil.make(made)
    evil.act("delete", "streamstore", "stated", "--wait=false")
    until("it goes", lambda: evil.get("streamstore", "stated") is None, SECONDS)
    _is_held(evil)


def _is_held(evil: Evil) -> None:
    found = evil.get("secret", PRECIOUS)
    assert found is not None
    assert found["metadata"].get("finalizers") == [IN_USE_FINALIZER]


MAKES: Final[dict[str, Callable[..., Object]]] = {
    "streamcopy": _copy,
    "scopecopy": _scope,
    "streamarchive": _archive,
}
FORGERIES: Final = ("plain", "immutable", "owned", "stated", "own Secret", "spoiled", "packed")


@pytest.mark.parametrize("forgery", FORGERIES)
@pytest.mark.parametrize("kind", MAKES)
def test_a_plan_that_the_operator_did_not_write_leads_nowhere(
    evil: Evil, kind: str, forgery: str
) -> None:
    """A copy whose StreamStore is not there connects to no address of a tenant's ConfigMap."""
    name = f"{kind}-{FORGERIES.index(forgery)}"
    secret = PRECIOUS if forgery == "own Secret" else evil.way
    honest = StreamCopyPlan(
        sources=(), streams=(), target=StoreAddress(uri=evil.hidden.uri, secret=PRECIOUS)
    )
    text = honest.model_dump_json().replace(PRECIOUS, secret)
    body = MAKES[kind](name, finalizers=[STAGING_FINALIZER])
    if forgery in {"stated", "own Secret"}:
        body["status"] = {"planDigest": honest.digest}
    made = evil.make(body)
    uid = made["metadata"]["uid"]
    assert "planDigest" not in made.get("status", {})
    plan: Object = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": plan_name(name, uid), "labels": child_labels(uid, "plan")},
        "immutable": forgery != "plain",
        "data": {"plan.json": "{" if forgery == "spoiled" else text},
    }
    if forgery == "packed":
        plan["binaryData"] = {"plan.json.gz": base64.b64encode(text.encode()).decode()}
    if forgery in {"owned", "stated", "own Secret"}:
        plan["metadata"]["ownerReferences"] = [_owner(made)]
    evil.make(plan)
    evil.act("delete", kind, name, "--wait=false")
    _look(evil, kind, name)


def _owner(body: Object) -> Object:
    return {
        "apiVersion": body["apiVersion"],
        "kind": body["kind"],
        "name": body["metadata"]["name"],
        "uid": body["metadata"]["uid"],
        "controller": True,
    }


def _job(name: str, labels: dict[str, str]) -> Object:
    box = {"name": "x", "image": "localhost/none"}
    template = {"spec": {"restartPolicy": "Never", "containers": [box]}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": labels},
        "spec": {"suspend": True, "template": template},
    }


def _pod(name: str, labels: dict[str, str]) -> Object:
    spec = {"nodeSelector": {"taken-by": "nobody"}, "containers": [{"name": "x", "image": "x"}]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
    }


@pytest.mark.parametrize("foreign", ["Job of a label", "Job of our name", "Pod of a label"])
def test_a_job_or_pod_with_our_labels_is_neither_ours_nor_deleted(evil: Evil, foreign: str) -> None:
    """A copy that is deleted ends its Jobs before it drops anything; this is none of them."""
    name = foreign.lower().replace(" ", "-")
    uid = evil.make(_copy(name, finalizers=[STAGING_FINALIZER]))["metadata"]["uid"]
    labels = child_labels(uid, "driver") | {ATTEMPT_LABEL: "1"}
    own = job_name(uid, 1) if "name" in foreign else f"cloned-{name}"
    kind = foreign.partition(" ")[0]
    stored = evil.make((_job if kind == "Job" else _pod)(own, labels))
    _look(evil, "streamcopy", name)
    evil.act("delete", "streamcopy", name, "--wait=false")
    _look(evil, "streamcopy", name)
    found = evil.get(kind, own)
    assert found is not None
    assert found["metadata"]["uid"] == stored["metadata"]["uid"]
    assert "deletionTimestamp" not in found["metadata"]


NOTES: Final = {
    "a time that is none": {REQUESTED_AT: "../../victim"},
    "a long time": {REQUESTED_AT: "9" * 200_000},
    "an orphan of a way": {FORCE_ORPHAN: f"../../victim/secrets/{LOGIN}"},
    "a held Secret of a copy": {HELD: f"../../victim/secrets/{LOGIN}"},
}


@pytest.mark.parametrize("note", NOTES)
def test_annotations_of_a_copy_are_read_as_text(evil: Evil, note: str) -> None:
    """The operator looks at the copy, and says what it says of any other."""
    name = f"noted-{list(NOTES).index(note)}"
    evil.make(_copy(name, annotations=NOTES[note]))
    _look(evil, "streamcopy", name)
    found = evil.get("streamcopy", name)
    assert found is not None
    assert "StoreNotFound" in json.dumps(found["status"])


def test_a_copy_owned_by_the_neighbours_secret_takes_nothing_along(evil: Evil) -> None:
    """Owners are of the same namespace; the Secret stays as it is when the copy goes."""
    owner = {"apiVersion": "v1", "kind": "Secret", "name": LOGIN}
    owner["uid"] = evil.login()["metadata"]["uid"]
    evil.make(_copy("adopted", ownerReferences=[owner]))
    evil.act("delete", "streamcopy", "adopted", "--ignore-not-found", "--wait=false")
    until("it goes", lambda: evil.get("streamcopy", "adopted") is None, SECONDS)


def _ephemeral(name: str, *, owner: str, namespace: str) -> Object:
    found = {"apiVersion": "v1", "kind": "ConfigMap", "name": owner, "namespace": namespace}
    spec = {"storeRef": {"name": "own"}, "scope": "a", "stream": name, "owners": [found]}
    return resource("EphemeralStream", name, spec | {"tracking": "Observe"})


def test_nothing_is_told_of_a_neighbours_workloads(evil: Evil) -> None:
    """Whether there is such an owner, or such a namespace, the same is said, and nothing of it."""
    owners = {
        "there": ("kube-root-ca.crt", evil.victim),
        "not-there": ("no-such-thing", evil.victim),
        "nowhere": ("no-such-thing", f"{evil.victim}-none"),
    }
    evil.act(
        "apply",
        "--filename=-",
        stdin=yaml.safe_dump({**_logs_in("mine", evil.stranger.uri), "metadata": {"name": "own"}}),
    )
    said = set()
    for name, (owner, namespace) in owners.items():
        evil.make(_ephemeral(name, owner=owner, namespace=namespace))
        _look(evil, "ephemeralstream", name)
        found = evil.get("ephemeralstream", name)
        assert found is not None
        ready = next(c for c in found["status"]["conditions"] if c["type"] == "Ready")
        assert "owners" not in found["status"] or not any(
            one.get("uid") for one in found["status"]["owners"]
        )
        said.add((ready["reason"], ready["message"].replace(f"{namespace}", "NAMESPACE")))
    assert len(said) == 1
    assert said.pop()[0] == "AccessDenied"


# -- stores that the neighbour shares, with others or with the tenant


def _neighbours(evil: Evil, name: str, to: str) -> Object:
    """A StreamStore of the neighbour's, with a login, that is shared with a namespace."""
    body = _logs_in(LOGIN)
    body["metadata"] = {"name": name, "namespace": evil.victim}
    grant = {"selector": {"matchLabels": {"kubernetes.io/metadata.name": to}}}
    body["spec"]["access"] = {"sharedWith": [grant]}
    return body


def _naming(evil: Evil, kind: str, name: str, store: str, **meta: Any) -> Object:
    """A tenant's resource in a StreamStore of the neighbour's."""
    made = {**MAKES, "ephemeralstream": _own_stream}
    text = json.dumps(made[kind](name, **meta))
    reference = json.dumps({"name": store, "namespace": evil.victim})
    body: Object = json.loads(re.sub(r'(?<="storeRef": )\{[^}]*\}', reference, text))
    return body


def _own_stream(name: str, **meta: Any) -> Object:
    spec = {"storeRef": {"name": "none"}, "scope": "a", "stream": "b"}
    return resource("EphemeralStream", name, spec, **meta)


_OWN: Final = re.compile(
    r"\d{4}-\d\d-\d\dT[\d:]*Z|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{8,}"
)
"""Times, UIDs and hashes of a resource's own."""

PLOYS: Final[dict[str, Object]] = {
    "plain": {},
    "finalizers": {"finalizers": [STAGING_FINALIZER, STREAMS_FINALIZER]},
    "asked": {"annotations": {REQUESTED_AT: "now"}},
}


@pytest.mark.parametrize("ploy", PLOYS)
@pytest.mark.parametrize("kind", [*MAKES, "ephemeralstream"])
def test_whether_a_neighbour_has_a_store_is_told_to_none_whom_it_does_not_admit(
    evil: Evil, kind: str, ploy: str
) -> None:
    """The same status, word for word; and nobody holds the neighbour's StreamStore so."""
    store = _neighbours(evil, "hidden", to="somebody-else")
    evil.cluster.kubectl("apply", "--filename=-", stdin=yaml.safe_dump(store))
    said = []
    for number, named in enumerate(("hidden", "no-such")):
        name = f"naming-{ploy}-{number}"
        evil.make(_naming(evil, kind, name, named, **PLOYS[ploy]))
        _look(evil, kind, name)
        evil.act("annotate", kind, name, "looked=again")
        found = evil.get(kind, name)
        assert found is not None
        text = json.dumps(found["status"]).replace(name, "NAME").replace(named, "STORE")
        said.append(_OWN.sub("", text))
        assert "StoreNotShared" in text
        evil.act("delete", kind, name, "--wait=false")
    assert said[0] == said[1]
    hidden = evil.get("streamstore", "hidden", evil.victim)
    assert hidden is not None
    assert "finalizers" not in hidden["metadata"]
    assert not hidden.get("status", {}).get("inUseBy")


@pytest.mark.parametrize("kind", [*MAKES, "ephemeralstream"])
def test_a_login_of_a_shared_store_is_nowhere_in_the_tenants_namespace(
    evil: Evil, kind: str
) -> None:
    """He may use the store by the operator, and gets no Secret, Job or word of it."""
    store = _neighbours(evil, "shared", to=evil.namespace)
    evil.cluster.kubectl("apply", "--filename=-", stdin=yaml.safe_dump(store))
    jobs = evil.act("get", "jobs,secrets", "--output=name")
    evil.make(_naming(evil, kind, "sharing", "shared"))
    wanted = "StoreNotReady" if kind == "ephemeralstream" else "LoginNotShared"

    def said() -> bool:
        return wanted in json.dumps((evil.get(kind, "sharing") or {}).get("status", {}))

    until(f"{kind} is told {wanted}", said, SECONDS)
    evil.act("delete", kind, "sharing")
    assert evil.act("get", "jobs,secrets", "--output=name") == jobs


def test_controls_of_a_tenants_own_lead_nowhere(evil: Evil) -> None:
    """They hold numbers; others are not read."""
    made = evil.make(_copy("controlled"))
    uid = made["metadata"]["uid"]
    evil.make(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": controls_name("controlled", uid),
                "ownerReferences": [_owner(made)],
            },
            "data": {"controls.json": json.dumps({"bytesPerSecond": evil.way})},
        }
    )
    _look(evil, "streamcopy", "controlled")


def test_the_operator_goes_on_after_all_of_this(evil: Evil) -> None:
    """It has not ended, and a new resource is looked at."""
    evil.make(_copy("after"))
    _look(evil, "streamcopy", "after")
    assert evil.operator.is_running
    assert evil.operator.probe("livez") == (200, "ok\n")
