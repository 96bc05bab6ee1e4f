"""The examples can be applied, and agree with their guides and with each other."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml

from sluice.api.fields.common import GROUP, Resource
from sluice.api.kinds.ephemeralstream import EphemeralStream
from sluice.api.kinds.streamcopy import StreamCopy
from sluice.api.kinds.streamstore import StreamStore
from sluice.api.load import Resources, load
from sluice.api.registry import KINDS
from sluice.core.reconcile.copies.hooks.standing import POINTS
from sluice.core.workloads import access
from sluice.core.workloads.request import copy_request
from sluice.kube.api.kinds import STREAM_COPY
from sluice.kube.api.names import Child
from sluice.kube.jobs.hooks import CONSENT, hook_job
from sluice.kube.loop.settings import Profile
from sluice.pipelines.programs.jobs import store_of
from support.kube.chart import ROOT, refusal, render
from support.kube.pod_security import violations

EXAMPLES = ROOT / "examples"
RESOURCES = sorted(path for path in EXAMPLES.glob("*.yaml") if path.name != "values.yaml")
COPIES = [
    path
    for path in RESOURCES
    if not path.name.startswith(("ephemeralstream", "streamquery", "streamstore"))
]
GUIDES = [
    *(ROOT / "docs" / f"{kind.name.lower()}.md" for kind in KINDS),
    *(ROOT / "docs" / name for name in ("cli.md", "scope-archives.md", "wordcount.md")),
]
MODELS = {kind.name: kind.model for kind in KINDS}
APPLICATION = "ephemeralstream-application.yaml"
AnyKind = TypeVar("AnyKind", bound=Resource)


@pytest.fixture
def values() -> dict[str, Any]:
    """Return the example's Helm values."""
    found: dict[str, Any] = yaml.safe_load((EXAMPLES / "values.yaml").read_text())
    return found


def resources(name: str) -> Resources:
    """Return the resources of an example."""
    return load((EXAMPLES / name).read_text())


def documents(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of an example, or those in a guide's blocks of YAML."""
    text = path.read_text()
    blocks = re.findall(r"```yaml\n(.*?)```", text, flags=re.DOTALL)
    for block in blocks if path.suffix == ".md" else [text]:
        yield from yaml.safe_load_all(block)


def resource(name: str, model: type[AnyKind]) -> AnyKind:
    """Return the only resource of a kind in an example."""
    (found,) = (one for one in documents(EXAMPLES / name) if one["kind"] == model.__name__)
    return model.model_validate(found)


@pytest.mark.parametrize("path", [*RESOURCES, *GUIDES], ids=lambda path: path.name)
def test_examples_can_be_applied(path: Path) -> None:
    """This version's models accept all resources of Sluice in examples and guides."""
    ours = [one for one in documents(path) if one["apiVersion"].startswith(f"{GROUP}/")]
    assert ours
    for one in ours:
        MODELS[one["kind"]].model_validate(one)


@pytest.mark.parametrize("path", COPIES, ids=lambda path: path.name)
def test_examples_of_copies_can_be_run_without_a_cluster(path: Path) -> None:
    """Each example has a copy or an archive for the command line, and the stores that it names.

    The stores of with-profile.yaml are in another file.
    """
    found = load(path.read_text())
    assert found.order
    for one in found.order if found.stores else ():
        for field, what in (*one.spec.origins, one.spec.goal):
            assert store_of(one, found, field, what)


def test_the_hooks_have_cron_jobs_that_are_meant_for_them() -> None:
    """Each CronJob consents to be a hook and is suspended. The hook's pod is restricted."""
    name = "streamcopy-hooks.yaml"
    hooks = resource(name, StreamCopy).spec.hooks
    there = {
        one["metadata"]["name"]: one
        for one in documents(EXAMPLES / name)
        if one["kind"] == "CronJob"
    }
    for point in POINTS:
        hook = getattr(hooks, point)
        cron_job = there.pop(hook.cron_job_ref.name)
        assert cron_job["metadata"]["annotations"] == {CONSENT: "true"}
        assert cron_job["spec"]["suspend"] is True
        child = Child(kind=STREAM_COPY, namespace="demo", name="orders-quiet", uid="u")
        job = hook_job(child, cron_job["spec"]["jobTemplate"], hook, point, "sluice-hook-1")
        assert violations(job["spec"]["template"]["spec"]) == []
    assert not there


@pytest.mark.parametrize("name", ["ephemeralstream.yaml", APPLICATION])
def test_an_ephemeral_stream_has_all_it_names(name: str) -> None:
    """The stream's store and owner are in its file and in its namespace."""
    stream = resource(name, EphemeralStream)
    (owner,) = stream.spec.owners
    there = {
        (one["apiVersion"], one["kind"], one["metadata"]["namespace"], one["metadata"]["name"])
        for one in documents(EXAMPLES / name)
    }
    namespace = stream.metadata.namespace
    assert (owner.api_version, owner.kind, namespace, owner.name) in there
    assert ("sluice.dev/v1alpha1", "StreamStore", namespace, stream.spec.store_ref.name) in there


def test_a_shared_store_admits_the_resource_beside_it() -> None:
    """The store's access admits the stream's namespace, scope and operations.

    The login's Secret is in the store's namespace.
    """
    name = "streamstore-shared.yaml"
    store, stream = resource(name, StreamStore), resource(name, EphemeralStream)
    spec, here = stream.spec, store.metadata.namespace
    assert spec.store_ref.other(stream.metadata.namespace) == here
    labels = {"kubernetes.io/metadata.name": stream.metadata.namespace}
    access.check(
        store.spec.access,
        store=spec.store_ref.title,
        scope=spec.scope,
        operations=access.needs(spec),
        grants=access.grants(store.spec.access, labels),
    )
    (secret,) = (one for one in documents(EXAMPLES / name) if one["kind"] == "Secret")
    assert (secret["metadata"]["namespace"], secret["metadata"]["name"]) == (
        here,
        store.spec.secret,
    )


def test_the_applications_streams_are_what_is_claimed() -> None:
    """The Deployment has the scope, prefix and store of its EphemeralStream.

    Its input and output are outside the prefix, and its pod is restricted.
    """
    stream, store = resource(APPLICATION, EphemeralStream), resource(APPLICATION, StreamStore)
    (deployment,) = (
        one for one in documents(EXAMPLES / APPLICATION) if one["kind"] == "Deployment"
    )
    pod = deployment["spec"]["template"]["spec"]
    told = {one["name"]: one["value"] for one in pod["containers"][0]["env"]}
    assert told["SCOPE"] == stream.spec.scope
    assert told["PREFIX"] == stream.spec.stream_prefix
    assert told["PRAVEGA_URI"] == store.spec.pravega.controller_uri
    assert not any(told[name].startswith(told["PREFIX"]) for name in ("INPUT", "OUTPUT"))
    assert violations(pod) == []


def test_the_page_shows_the_applications_ephemeral_stream() -> None:
    """The page's only block of YAML has the spec of the example's EphemeralStream."""
    (shown,) = documents(ROOT / "docs" / "wordcount.md")
    assert shown["spec"] == next(
        one["spec"]
        for one in documents(EXAMPLES / APPLICATION)
        if one["kind"] == EphemeralStream.__name__
    )


def test_the_store_admits_the_owner_of_another_namespace() -> None:
    """The store's access admits the stream's scope, and the owner's namespace by its labels.

    The labels are those that the example's command sets.
    """
    name = "ephemeralstream-prefix.yaml"
    stream = resource(name, EphemeralStream)
    store = resource(name, StreamStore)
    (owner,) = stream.spec.owners
    assert owner.namespace is not None
    assert store.metadata.namespace == stream.metadata.namespace != owner.namespace
    text = (EXAMPLES / name).read_text()
    (labels,) = re.findall(rf"kubectl label namespace {owner.namespace} ((?:\S+=\S+ ?)+)", text)
    access.check_namespace(
        store.spec.access,
        store="main",
        here=store.metadata.namespace,
        namespace=owner.namespace,
        labels=dict(label.split("=") for label in labels.split()),
    )
    access.check(
        store.spec.access, store="main", scope=stream.spec.scope, operations=["Create", "Delete"]
    )


@pytest.mark.parametrize(
    ("name", "append"), [("streamcopy-append.yaml", True), ("streamcopy.yaml", False)]
)
def test_a_copy_appends_where_its_file_says_so(name: str, append: bool) -> None:  # noqa: FBT001 - a parameter
    """A copy appends only with `onExists: Append`. With another value it has another id."""
    (copy,) = resources(name).copies
    assert copy_request(copy, cluster="c").append is append
    other = "Fail" if append else "Append"
    target = copy.spec.target.model_copy(update={"on_exists": other})
    changed = copy.model_copy(update={"spec": copy.spec.model_copy(update={"target": target})})
    assert copy_request(changed, cluster="c").copy_id != copy_request(copy, cluster="c").copy_id


def test_a_copy_with_a_login_is_whole() -> None:
    """The copy's file has its stores, and their Secrets in the stores' namespace."""
    found = resources("with-login.yaml")
    objects = yaml.safe_load_all((EXAMPLES / "with-login.yaml").read_text())
    secrets = {
        (m["metadata"]["namespace"], m["metadata"]["name"]): set(m["stringData"])
        for m in objects
        if m["kind"] == "Secret"
    }
    (copy,) = found.copies
    for side in ("source", "target"):
        store = found.store(copy, getattr(copy.spec, side).ref, field=side)
        auth = store.spec.pravega.auth
        assert auth is not None
        key = (store.metadata.namespace, auth.basic.secret_ref.name)
        assert secrets[key] == {"username", "password"}


def test_the_chart_takes_the_values(values: dict[str, Any]) -> None:
    """The values pass the chart's schema and the operator's own check.

    They keep the default profile.
    """
    assert refusal(values) == ""
    profiles = render(values).config["profiles"]
    assert set(profiles) == {"default", "large"}
    Profile.model_validate(profiles["large"])


def test_the_profile_allows_what_the_copy_asks_for(values: dict[str, Any]) -> None:
    """The big copy stays within its profile. Its namespace is one where executors may run."""
    (copy,) = resources("with-profile.yaml").copies
    runtime = copy.spec.runtime
    profile = Profile.model_validate(values["profiles"][runtime.profile])
    assert copy.metadata.namespace in values["driver"]["namespaces"]
    assert runtime.executors is not None
    assert 0 < runtime.executors <= profile.max_executors
    assert runtime.executor is not None
    assert runtime.executor.resources.cpu is not None
    assert runtime.executor.resources.cpu <= profile.max_resources.cpu
    assert runtime.executor.resources.memory is not None
    assert runtime.executor.resources.memory <= profile.max_resources.memory
    stores = resources("with-login.yaml").stores
    for side in (copy.spec.source, copy.spec.target):
        assert (copy.metadata.namespace, side.store_ref.name) in stores
