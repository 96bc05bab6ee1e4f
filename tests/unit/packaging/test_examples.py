"""The examples do what they say."""

from typing import Any

import pytest
import yaml

from sluice.api.load import Resources, load
from sluice.kube.settings import Profile
from support.chart import ROOT, refusal, render

EXAMPLES = ROOT / "examples"
RESOURCES = sorted(path for path in EXAMPLES.glob("*.yaml") if path.name != "values.yaml")


@pytest.fixture
def values() -> dict[str, Any]:
    """Gives the example's Helm values."""
    found: dict[str, Any] = yaml.safe_load((EXAMPLES / "values.yaml").read_text())
    return found


def resources(name: str) -> Resources:
    """The resources of an example."""
    return load((EXAMPLES / name).read_text())


@pytest.mark.parametrize("path", RESOURCES, ids=lambda path: path.name)
def test_examples_can_be_applied(path: Any) -> None:
    """Each has resources that this version understands."""
    assert load(path.read_text()).copies


def test_a_copy_with_a_login_is_whole() -> None:
    """Stores and Secrets that are named are in the file, in the copy's namespace."""
    found = resources("with-login.yaml")
    objects = yaml.safe_load_all((EXAMPLES / "with-login.yaml").read_text())
    secrets = {
        (m["metadata"]["namespace"], m["metadata"]["name"]): set(m["stringData"])
        for m in objects
        if m["kind"] == "Secret"
    }
    (copy,) = found.copies
    for side in ("source", "target"):
        store = found.store(copy, getattr(copy.spec, side).store_ref.name, side=side)
        auth = store.spec.pravega.auth
        assert auth is not None
        key = (store.metadata.namespace, auth.basic.secret_ref.name)
        assert secrets[key] == {"username", "password"}


def test_the_chart_takes_the_values(values: dict[str, Any]) -> None:
    """The values pass the schema and the operator's own check, and keep the default profile."""
    assert refusal(values) == ""
    profiles = render(values).config["profiles"]
    assert set(profiles) == {"default", "large"}
    Profile.model_validate(profiles["large"])


def test_the_profile_allows_what_the_copy_asks_for(values: dict[str, Any]) -> None:
    """The big copy stays within the profile that it names, in a namespace made for executors."""
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
