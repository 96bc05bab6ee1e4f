"""The gateway in the chart: off by default, with few rights."""

from __future__ import annotations

from typing import Any

import pytest

from sluice.kube.loop.settings import OperatorSettings
from support.kube.chart import NAMESPACE, Rendered, lint, refusal, render, rules

NAME = "sluice-gateway"
GATEWAY = {"enabled": True, "image": "registry.example/sluice-query:1"}


def gateway(**values: Any) -> Rendered:
    """Return the objects of a chart with a gateway."""
    return render({"gateway": GATEWAY | values})


def words(objects: Rendered) -> list[str]:
    """Return the gateway's command line."""
    (container,) = objects.named("Deployment", NAME)["spec"]["template"]["spec"]["containers"]
    found: list[str] = container["args"]
    return found


def test_there_is_none_unless_it_is_asked_for() -> None:
    """By default the chart makes no object of the gateway."""
    assert not [one for one in render() if one["metadata"]["name"] == NAME]


@pytest.mark.parametrize(
    ("values", "page"),
    [
        ({}, "/q/shop/clicks"),
        ({"url": "https://sluice.example.com/"}, "https://sluice.example.com/q/shop/clicks"),
        ({"enabled": False, "url": "https://sluice.example.com"}, None),
    ],
    ids=["path", "url", "none"],
)
def test_the_operator_tells_the_pages_of_queries(values: dict[str, Any], page: str | None) -> None:
    """The status has the address, or the path if the address is not known."""
    settings = OperatorSettings.model_validate(gateway(**values).config)
    assert settings.queries.page_of("shop", "clicks") == page


def test_it_reads_in_the_namespaces_that_it_shows() -> None:
    """The gateway has Roles only in the namespaces that it shows. It reads Secrets only by name."""
    objects = gateway(namespaces=["shop", "billing"], secrets=["login"])
    roles = [one for one in objects.of("Role") if one["metadata"]["name"] == NAME]
    assert [one["metadata"]["namespace"] for one in roles] == ["shop", "billing"]
    assert ("", "secrets", "get", "login") in set(rules(objects, NAME))
    for _, resource, verb, only in rules(gateway(), NAME):
        assert verb in {"get", "list"} or resource.endswith("reviews")
        assert resource != "secrets"
        assert not only
    assert words(objects)[-4:] == ["--namespace", "shop", "--namespace", "billing"]
    assert words(gateway())[-2:] == ["--namespace", NAMESPACE]


def test_kubernetes_decides_unless_a_token_is_named() -> None:
    """With a token the gateway has no right to ask Kubernetes.

    It reads the token from a mounted Secret.
    """
    asked = {"tokenreviews", "subjectaccessreviews"}
    assert asked <= {resource for _, resource, _, _ in rules(gateway(), NAME)}
    objects = gateway(access="Token", token={"secretName": "viewers", "secretKey": "key"})
    assert not asked & {resource for _, resource, _, _ in rules(objects, NAME)}
    assert "--token-file" in words(objects)
    pod = objects.named("Deployment", NAME)["spec"]["template"]["spec"]
    (secret,) = [one["secret"] for one in pod["volumes"] if one["name"] == "token"]
    assert secret["secretName"] == "viewers"
    assert secret["items"] == [{"key": "key", "path": "token"}]


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"enabled": True}, "gateway.image"),
        (GATEWAY | {"access": "Token"}, "gateway.token.secretName"),
    ],
)
def test_what_is_missing_is_named(values: dict[str, Any], field: str) -> None:
    """Helm refuses values that lack a required field, and names the field."""
    assert field in refusal({"gateway": values})


def test_it_is_offered_by_https_if_there_is_a_certificate() -> None:
    """With a certificate, the Service, the readiness probe and the command line all use TLS."""
    objects = gateway(tls={"secretName": "certificate"})
    (port,) = objects.named("Service", NAME)["spec"]["ports"]
    assert (port["name"], port["port"]) == ("https", 443)
    pod = objects.named("Deployment", NAME)["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["readinessProbe"]["httpGet"]["scheme"] == "HTTPS"
    assert "--tls-dir" in container["args"]


def test_its_pod_is_restricted_and_obeys_the_rules_about_stores() -> None:
    """The gateway's pod is restricted. It obeys the operator's rules about stores and Secrets."""
    objects = render(
        {
            "gateway": GATEWAY,
            "stores": {"allowed": ["tcp://*.shop.svc:9090"], "requireSecretLabel": True},
        }
    )
    pod = objects.named("Deployment", NAME)["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert container["args"][container["args"].index("--allowed-store") + 1] == (
        "tcp://*.shop.svc:9090"
    )
    assert "--labelled-secrets" in container["args"]


def test_helm_finds_no_mistake() -> None:
    """`helm lint --strict` passes with a gateway that has a certificate."""
    assert lint({"gateway": GATEWAY | {"tls": {"secretName": "certificate"}}}) == ""
