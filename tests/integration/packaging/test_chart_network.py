"""The connections to and from the operator that the chart allows: network policy, sinks."""

from typing import Any

import pytest

from support.kube.chart import EVERYTHING, render

SECRET_HEADER = {"name": "X-Token", "secretName": "sink", "secretKey": "token"}


@pytest.mark.parametrize("values", [{}, EVERYTHING], ids=["as it comes", "everything"])
def test_only_metrics_and_probes_can_be_reached(values: dict[str, Any]) -> None:
    """The network policy admits connections to the metrics' port only."""
    policy = render(values).one("NetworkPolicy")["spec"]
    assert policy["ingress"] == [{"ports": [{"protocol": "TCP", "port": "metrics"}]}]
    assert "Ingress" in policy["policyTypes"]


def test_stores_are_reachable_on_any_port_unless_told_otherwise() -> None:
    """The default policy restricts no egress, so that it cuts off no store."""
    assert render().one("NetworkPolicy")["spec"]["policyTypes"] == ["Ingress"]


def test_what_the_operator_reaches_can_be_narrowed() -> None:
    """Egress can be restricted to DNS, the API server and stores, each with addresses and ports."""
    scraper = {"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}
    policy = render(
        {
            "networkPolicy": {
                "ingress": {"from": [scraper]},
                "egress": {
                    "enabled": True,
                    "apiServer": {"cidrs": ["10.0.0.1/32"], "ports": [6443]},
                    "stores": {"cidrs": ["10.1.0.0/16", "fd00::/8"], "ports": [9090]},
                },
            }
        }
    ).named("NetworkPolicy", "sluice-operator")["spec"]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    assert policy["ingress"][0]["from"] == [scraper]
    assert policy["egress"] == [
        {"ports": [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}]},
        {
            "ports": [{"protocol": "TCP", "port": 6443}],
            "to": [{"ipBlock": {"cidr": "10.0.0.1/32"}}],
        },
        {
            "ports": [{"protocol": "TCP", "port": 9090}],
            "to": [{"ipBlock": {"cidr": "10.1.0.0/16"}}, {"ipBlock": {"cidr": "fd00::/8"}}],
        },
    ]


def test_a_sinks_header_is_a_file_of_its_secret_only() -> None:
    """The sink's header is a mounted file, so the operator needs no right to read its Secret."""
    objects = render({"notices": {"sink": "https://events.example/s", "header": SECRET_HEADER}})
    assert objects.config["notices"] == {
        "sink": "https://events.example/s",
        "header": {"name": "X-Token", "file": "/etc/sluice-sink/header"},
    }
    (volume,) = [one for one in objects.pod["spec"]["volumes"] if "secret" in one]
    assert volume["secret"] == {
        "secretName": "sink",
        "defaultMode": 0o440,
        "items": [{"key": "token", "path": "header"}],
    }
    (mount,) = [
        one
        for one in objects.pod["spec"]["containers"][0]["volumeMounts"]
        if one["name"] == volume["name"]
    ]
    assert mount == {"name": "sink", "mountPath": "/etc/sluice-sink", "readOnly": True}


@pytest.mark.parametrize("sink", ["", "https://events.example/s"])
def test_egress_to_a_sink_is_open_only_where_there_is_one(sink: str) -> None:
    """Egress to a sink is open only if a sink is set."""
    notices = {"cidrs": ["192.0.2.7/32"], "ports": [443]}
    policy = {"egress": {"enabled": True, "notices": notices}}
    spec = render({"notices": {"sink": sink}, "networkPolicy": policy}).one("NetworkPolicy")["spec"]
    cidrs = [peer["ipBlock"]["cidr"] for rule in spec["egress"] for peer in rule.get("to", ())]
    assert cidrs == (["192.0.2.7/32"] if sink else [])


def test_a_sink_opens_no_way_to_every_address() -> None:
    """A sink opens no egress to all addresses, since tenants choose addresses of stores."""
    values = {
        "notices": {"sink": "https://events.example/s"},
        "networkPolicy": {"egress": {"enabled": True}},
    }
    with pytest.raises(AssertionError, match=r"egress\.notices\.cidrs"):
        render(values)
