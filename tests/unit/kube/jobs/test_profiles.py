"""The bounds of a profile for a tenant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from sluice.errors import Category
from sluice.kube.api.objects import parse_copy
from sluice.kube.jobs.profiles import profile_trouble
from sluice.kube.loop.settings import OperatorSettings
from support.cases.resources import COPY, SCOPE, changed

if TYPE_CHECKING:
    from sluice.core.values.trouble import Trouble


def trouble(
    resource: dict[str, Any] = COPY, *, host: str | None = None, **runtime: Any
) -> Trouble | None:
    """Return the reason why the copy's runtime is refused."""
    settings = OperatorSettings.model_validate(
        {
            "image": "i",
            "executorNamespaces": ["default"],
            "profiles": {
                "default": {"maxExecutors": 3, "maxResources": {"cpu": "2", "memory": "4Gi"}},
                "other": {},
            },
        }
    )
    copy = parse_copy(
        changed(changed(resource, "spec.runtime", runtime), "metadata.namespace", "default")
    )
    profile = settings.profiles.get(copy.spec.runtime.profile)
    return profile_trouble(copy, profile, settings, host=host)


@pytest.mark.parametrize(
    ("runtime", "field"),
    [
        ({"executors": 1}, "spec.runtime.executors"),
        ({"driver": {"resources": {"cpu": "1"}}}, "spec.runtime.driver.resources"),
        ({"driver": {"resources": {"memory": "1Gi"}}}, "spec.runtime.driver.resources"),
        (
            {"driver": {"resources": {"cpu": "1", "cpuLimit": "1"}}},
            "spec.runtime.driver.resources",
        ),
        ({"executor": {"resources": {"cpu": "1"}}}, "spec.runtime.executor"),
        ({}, None),
        ({"executors": 0}, None),
        ({"profile": "other"}, None),
    ],
)
def test_a_driver_in_the_namespace_of_a_store_has_nothing_but_a_profile(
    runtime: dict[str, Any], field: str | None
) -> None:
    """The tenant chooses neither pods nor sizes in another namespace."""
    found = trouble(host="platform", **runtime)
    assert (found and found.field) == field
    if found is not None:
        assert found.reason == "InvalidSpec"
        assert "'platform'" in found.message


@pytest.mark.parametrize(
    "runtime",
    [
        {},
        {"executors": 3},
        {"driver": {"resources": {"cpu": "2", "memory": "4Gi"}}},
        {"executors": 1, "executor": {"resources": {"cpu": "500m"}}},
        {"profile": "other", "executors": 8},
    ],
)
def test_what_the_profile_allows_is_to_be_had(runtime: dict[str, Any]) -> None:
    """The profile's bounds are included."""
    assert trouble(**runtime) is None


@pytest.mark.parametrize(
    ("runtime", "field", "words"),
    [
        ({"executors": 4}, "spec.runtime.executors", "4 is more"),
        (
            {"driver": {"resources": {"cpu": "2001m"}}},
            "spec.runtime.driver.resources.cpu",
            "2001m is more than the runtime profile allows: 2 at most",
        ),
        (
            {"driver": {"resources": {"cpu": 1, "cpuLimit": 200}}},
            "spec.runtime.driver.resources.cpuLimit",
            "more than",
        ),
        (
            {"driver": {"resources": {"memory": "5Gi"}}},
            "spec.runtime.driver.resources.memory",
            "5Gi is more than the runtime profile allows: 4Gi at most",
        ),
        (
            {"executor": {"resources": {"memory": "5Gi"}}},
            "spec.runtime.executor.resources.memory",
            "more than",
        ),
        ({"profile": "big"}, "spec.runtime.profile", "offered are: default, other"),
    ],
)
def test_more_than_the_profile_allows_is_refused_by_the_field(
    runtime: dict[str, Any], field: str, words: str
) -> None:
    """The tenant can change the field, and the message names the allowed value."""
    found = trouble(**runtime)
    assert found is not None
    assert (found.field, found.category) == (field, Category.SPEC)
    assert words in found.message


def test_a_copy_of_a_scope_gets_no_more() -> None:
    """The profile's bounds hold for each kind of copy."""
    assert trouble(SCOPE, executors=3) is None
    found = trouble(SCOPE, executors=4)
    assert found is not None
    assert found.field == "spec.runtime.executors"
