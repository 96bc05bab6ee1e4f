"""The chart's values for traces, as the operator and its drivers get them."""

from __future__ import annotations

import re
from typing import Any

import pytest

from sluice.kube.loop.settings import OperatorSettings
from support.kube.chart import EVERYTHING, render

URL = "http://collector.monitoring:4318"
TRACED = {
    "tracing": {
        "endpoint": URL,
        "headers": {"secretName": "traces", "secretKey": "token"},
        "sampler": "parentbased_traceidratio",
        "samplerArgument": "0.25",
    }
}


def environment(values: dict[str, Any]) -> dict[str, Any]:
    """Return the variables of the operator's container."""
    (container,) = render(values).pod["spec"]["containers"]
    return {one["name"]: one.get("value") or one["valueFrom"] for one in container["env"]}


def test_nothing_is_traced_by_default() -> None:
    """The operator has no variable of OpenTelemetry, and drivers get no endpoint."""
    assert [name for name in environment({}) if "OTEL" in name] == []
    assert render().config["tracing"]["endpoint"] == ""


def test_the_operator_is_traced_by_the_standard_variables() -> None:
    """The standard variables set up traces. Headers come from a Secret and are in no setting."""
    found = environment(TRACED)
    assert {name: value for name, value in found.items() if "OTEL" in name} == {
        "OTEL_EXPORTER_OTLP_ENDPOINT": URL,
        "OTEL_EXPORTER_OTLP_HEADERS": {"secretKeyRef": {"name": "traces", "key": "token"}},
        "OTEL_TRACES_SAMPLER": "parentbased_traceidratio",
        "OTEL_TRACES_SAMPLER_ARG": "0.25",
        "OTEL_RESOURCE_ATTRIBUTES": "k8s.namespace.name=sluice-system,k8s.pod.name=$(POD_NAME)",
    }
    # Kubernetes expands $(POD_NAME) only if that variable comes first.
    assert list(found).index("POD_NAME") < list(found).index("OTEL_RESOURCE_ATTRIBUTES")


def test_the_operator_reads_where_drivers_send_spans() -> None:
    """The operator reads endpoint, headers and sampler for drivers from its settings."""
    read = OperatorSettings.model_validate(render(TRACED).config).tracing
    assert (read.endpoint, read.sampler) == (URL, "parentbased_traceidratio")
    assert (read.headers.secret_name, read.headers.secret_key) == ("traces", "token")
    assert read.sampler_argument == "0.25"


@pytest.mark.parametrize("url", ["", URL])
def test_egress_to_a_collector_is_open_only_where_there_is_one(url: str) -> None:
    """Egress to a collector is open only if a collector is set."""
    egress = {"enabled": True, "tracing": {"cidrs": ["192.0.2.8/32"]}}
    values = {"tracing": {"endpoint": url}, "networkPolicy": {"egress": egress}}
    spec = render(values).one("NetworkPolicy")["spec"]
    open_to = [
        (peer["ipBlock"]["cidr"], [port["port"] for port in rule["ports"]])
        for rule in spec["egress"]
        for peer in rule.get("to", ())
    ]
    assert open_to == ([("192.0.2.8/32", [4318])] if url else [])


def test_a_collector_opens_no_way_to_every_address() -> None:
    """A collector opens no egress to all addresses, since tenants choose addresses of stores."""
    values = {"tracing": {"endpoint": URL}, "networkPolicy": {"egress": {"enabled": True}}}
    with pytest.raises(AssertionError, match=re.escape("egress.tracing.cidrs")):
        render(values)


def test_a_share_of_traces_stays_a_text() -> None:
    """The share of traces is a text, since a variable cannot be a number in YAML."""
    (container,) = render(EVERYTHING).pod["spec"]["containers"]
    values = [one["value"] for one in container["env"] if "value" in one]
    assert "0.1" in values
    assert all(isinstance(one, str) for one in values)
