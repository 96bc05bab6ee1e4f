"""The variables by which a driver's pod continues the operator's trace."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from sluice.kube.jobs import manifests
from sluice.kube.loop.settings import TracingSettings
from support.reconcile.requests import driver, executor, request

URL = "http://collector.monitoring:4318"
CONTEXT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
TRACED = {"tracing": {"endpoint": URL, "headers": {"secretName": "traces"}, "sampler": "always_on"}}


def environment(container: dict[str, Any]) -> dict[str, Any]:
    """Return the variables of a container."""
    return {one["name"]: one.get("value") or one["valueFrom"] for one in container["env"]}


def test_a_driver_goes_on_with_the_trace_of_its_job() -> None:
    """Kubernetes fills in the pod's names and the headers, which are optional."""
    found = environment(driver(replace(request(operator=TRACED), trace=CONTEXT)))
    assert found["TRACEPARENT"] == CONTEXT
    assert found["OTEL_EXPORTER_OTLP_ENDPOINT"] == URL
    assert found["OTEL_TRACES_SAMPLER"] == "always_on"
    assert "OTEL_TRACES_SAMPLER_ARG" not in found
    assert found["OTEL_EXPORTER_OTLP_HEADERS"] == {
        "secretKeyRef": {"name": "traces", "key": "headers", "optional": True}
    }
    names = list(found)
    assert "k8s.pod.name=$(POD_NAME)" in found["OTEL_RESOURCE_ATTRIBUTES"]
    assert names.index("POD_NAME") < names.index("OTEL_RESOURCE_ATTRIBUTES")


@pytest.mark.parametrize("context", ["", CONTEXT])
def test_a_driver_is_not_traced_by_default(context: str) -> None:
    """The pod stays the same, even if the operator is traced."""
    made = replace(request(), trace=context)
    assert manifests.job(made) == manifests.job(request())
    assert [name for name in environment(driver(made)) if "OTEL" in name] == []


def test_executors_are_not_traced() -> None:
    """The driver's span has their steps, and they get no headers."""
    made = replace(request(operator=TRACED, runtime={"executors": 1}), trace=CONTEXT)
    assert URL not in str(executor(made))
    assert CONTEXT not in str(executor(made))


def test_what_is_traced_replaces_no_pod() -> None:
    """A driver that waits for a node is not made anew for it."""
    notes = [
        manifests.job(request(operator=one))["metadata"]["annotations"] for one in ({}, TRACED)
    ]
    assert notes[0] == notes[1]


@pytest.mark.parametrize("url", ["collector:4318", "https://me:secret@collector", "file:///x"])
def test_an_endpoint_is_a_url_without_credentials(url: str) -> None:
    """Tenants can read it in their pods."""
    with pytest.raises(ValidationError):
        TracingSettings(endpoint=url)
