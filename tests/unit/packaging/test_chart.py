"""What the chart makes of its values."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from sluice.core.catalogue import METRICS
from sluice.kube.loop.settings import ExecutorSize, OperatorSettings, PodSize, Profile
from support.kube.chart import (
    CHART,
    EVERYTHING,
    NAMESPACE,
    NAMESPACED,
    ROOT,
    Rendered,
    lint,
    render,
)

VARIANTS: dict[str, Any] = {
    "as it comes": {},
    "everything": EVERYTHING,
    "two namespaces": NAMESPACED,
    "two namespaces, own cluster id": NAMESPACED | {"clusterID": "paris"},
    "without CRDs and roles for people": {"crds": {"install": False}, "rbac": {"aggregate": False}},
    "no network policy": {"networkPolicy": {"enabled": False}},
}


SECRET_HEADER = {"name": "X-Token", "secretName": "sink", "secretKey": "token"}


@pytest.fixture(params=VARIANTS.values(), ids=VARIANTS.keys())
def rendered(request: pytest.FixtureRequest) -> Rendered:
    """Gives the objects of each variant."""
    return render(request.param)


@pytest.mark.parametrize("values", VARIANTS.values(), ids=VARIANTS.keys())
def test_helm_finds_nothing_to_complain_of(values: dict[str, Any]) -> None:
    """`helm lint --strict` passes with each variant."""
    assert lint(values) == ""


def test_the_chart_of_a_checkout_runs_the_image_of_a_checkout() -> None:
    """Its version is before all others, and its image is that of `make image`."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == ("0.0.0-dev", "dev")
    makefile = (ROOT / "Makefile").read_text()
    assert f" image {render().pod['spec']['containers'][0]['image']} ." in makefile


def test_every_object_says_whose_it_is(rendered: Rendered) -> None:
    """Each has the chart's labels, and each that lives in a namespace names it."""
    cluster_wide = {"ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition"}
    for manifest in rendered:
        metadata = manifest["metadata"]
        assert metadata["labels"]["app.kubernetes.io/name"] == "sluice"
        assert ("namespace" in metadata) == (manifest["kind"] not in cluster_wide), metadata


def test_no_two_objects_have_one_name(rendered: Rendered) -> None:
    """Nothing is made twice."""
    keys = [(m["kind"], m["metadata"].get("namespace"), m["metadata"]["name"]) for m in rendered]
    assert len(keys) == len(set(keys))


def test_crds_are_the_generated_ones_and_kept() -> None:
    """The chart's CRDs are those of crds/, with the mark that keeps Helm from deleting them."""
    crds = {crd["metadata"]["name"]: crd for crd in render().of("CustomResourceDefinition")}
    sources = [yaml.safe_load(path.read_text()) for path in (ROOT / "crds").glob("*.yaml")]
    assert len(sources) == len(crds) >= 2
    for source in sources:
        crd = crds[source["metadata"]["name"]]
        assert crd["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
        assert crd["spec"] == source["spec"]


def test_crds_can_be_left_out() -> None:
    """Another release of the cluster may bring them."""
    assert render({"crds": {"install": False}}).of("CustomResourceDefinition") == []


def test_the_operators_pod_is_restricted(rendered: Rendered) -> None:
    """It satisfies the `restricted` pod security standard, and cannot write to its image."""
    spec = rendered.pod["spec"]
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["runAsUser"] == 65532
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not {"hostNetwork", "hostPID", "hostIPC", "initContainers"} & set(spec)
    assert {kind for volume in spec["volumes"] for kind in volume} <= {
        "name",
        "configMap",
        "emptyDir",
        "secret",
    }
    for container in spec["containers"]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert all("hostPort" not in port for port in container["ports"])
        writable = [m["mountPath"] for m in container["volumeMounts"] if not m.get("readOnly")]
        assert writable == ["/tmp"]  # noqa: S108 - the pod's own emptyDir
        assert set(container["resources"]) == {"requests", "limits"}


def test_the_operator_runs_once() -> None:
    """One replica, and the old one ends before the new one starts."""
    spec = render().one("Deployment")["spec"]
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})


def test_probes_ask_the_operator() -> None:
    """Liveness and readiness are asked where the operator's settings say that it listens."""
    objects = render()
    (container,) = objects.pod["spec"]["containers"]
    assert container["ports"] == [
        {"name": "metrics", "containerPort": objects.config["listen"]["port"]}
    ]
    asked = {
        name: container[f"{name}Probe"]["httpGet"] for name in ("startup", "liveness", "readiness")
    }
    assert asked == {
        "startup": {"path": "/livez", "port": "metrics"},
        "liveness": {"path": "/livez", "port": "metrics"},
        "readiness": {"path": "/readyz", "port": "metrics"},
    }


def test_the_operator_reads_its_settings(rendered: Rendered, tmp_path: Path) -> None:
    """The operator takes the file that the chart writes, and finds it where it is told to look."""
    file = tmp_path / "config.yaml"
    file.write_text(rendered.config_file)
    settings = OperatorSettings.read(file)
    (container,) = rendered.pod["spec"]["containers"]
    assert settings.image == container["image"]
    assert settings.profiles == {"default": Profile()}
    assert container["args"][-2:] == ["--config", "/etc/sluice/config.yaml"]


def test_the_values_show_every_setting_of_a_profile() -> None:
    """The default profile names each field, so that values.yaml documents them all."""
    profile = render().config["profiles"]["default"]
    shown = {name: set(profile[name]) for name in ("driver", "executor")}
    assert set(profile) == {field.alias for field in Profile.model_fields.values()}
    assert shown["driver"] == {field.alias for field in PodSize.model_fields.values()}
    assert shown["executor"] == {field.alias for field in ExecutorSize.model_fields.values()}


def test_settings_reach_the_operator() -> None:
    """Namespaces, pull secrets, identity and further profiles are handed on."""
    config = render(
        {
            "clusterID": "paris",
            "watch": {"namespaces": ["demo"], "excludedNamespaces": ["team-*"]},
            "imagePullSecrets": [{"name": "registry"}],
            "image": {"repository": "registry.example/sluice", "pullPolicy": "Always"},
            "operator": {
                "resyncSeconds": 30,
                "lookSeconds": 60,
                "ambientIdentity": True,
                "metrics": {"resources": True, "maxResources": 50_000},
            },
            "profiles": {
                "default": None,
                "large": {"slots": 8, "ttlSecondsAfterFinished": 31_536_000, "sparkConf": {}},
            },
        }
    ).config
    assert config.pop("listen")["port"] == 8080
    assert config == {
        "clusterID": "paris",
        "namespaces": ["demo"],
        "excludedNamespaces": ["team-*"],
        "executorNamespaces": [],
        "imagePullSecrets": ["registry"],
        "image": "registry.example/sluice:dev",
        "imagePullPolicy": "Always",
        "resyncSeconds": 30,
        "lookSeconds": 60,
        "ambientIdentity": True,
        "metrics": {"resources": True, "maxResources": 50_000},
        "notices": {"sink": "", "header": {"name": "Authorization", "file": ""}},
        "profiles": {"large": {"slots": 8, "ttlSecondsAfterFinished": 31_536_000, "sparkConf": {}}},
    }


def test_a_change_of_settings_restarts_the_operator() -> None:
    """The pod carries the checksum of the settings, and of nothing else."""

    def checksum(values: dict[str, Any]) -> str:
        found: str = render(values).pod["metadata"]["annotations"]["sluice.dev/config-checksum"]
        return found

    before = checksum({})
    assert checksum({"profiles": {"default": {"slots": 3}}}) != before
    assert checksum({"monitoring": {"serviceMonitor": {"enabled": True}}}) == before


def test_an_image_can_be_pinned() -> None:
    """A digest goes before the tag, for the operator and for drivers."""
    digest = "sha256:" + "0" * 64
    objects = render({"image": {"repository": "r.example/s", "tag": "1", "digest": digest}})
    assert objects.pod["spec"]["containers"][0]["image"] == f"r.example/s@{digest}"
    assert objects.config["image"] == f"r.example/s@{digest}"


def test_the_pod_can_be_placed() -> None:
    """What is said about the operator's pod is in it, and the chart's own labels stay."""
    placement = {
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"key": "infra", "operator": "Exists", "effect": "NoSchedule"}],
        "affinity": {"nodeAffinity": {}},
        "priorityClassName": "system-cluster-critical",
    }
    extras = {"podLabels": {"team": "data"}, "podAnnotations": {"note": "1"}}
    pod = render(
        {"operator": {**placement, **extras}, "imagePullSecrets": [{"name": "registry"}]}
    ).pod
    assert {name: pod["spec"][name] for name in placement} == placement
    assert pod["spec"]["imagePullSecrets"] == [{"name": "registry"}]
    assert pod["metadata"]["labels"].items() >= {"team": "data"}.items()
    assert pod["metadata"]["annotations"].items() >= {"note": "1"}.items()


def test_selectors_find_the_operator_and_no_driver() -> None:
    """All that selects the operator's pod matches it, and does not match pods of copies."""
    objects = render(EVERYTHING)
    labels = objects.pod["metadata"]["labels"].items()
    driver = {"app.kubernetes.io/name": "sluice", "app.kubernetes.io/component": "driver"}.items()
    selectors = [
        objects.one("Deployment")["spec"]["selector"]["matchLabels"],
        objects.one("Service")["spec"]["selector"],
        objects.one("NetworkPolicy")["spec"]["podSelector"]["matchLabels"],
    ]
    for selector in selectors:
        assert selector.items() <= labels
        assert not selector.items() <= driver
    scraped = objects.one("ServiceMonitor")["spec"]["selector"]["matchLabels"]
    assert scraped.items() <= objects.one("Service")["metadata"]["labels"].items()


def test_names_that_look_like_numbers_stay_names() -> None:
    """Releases, namespaces and profiles may be called 123 or true."""
    values = {
        "watch": {"namespaces": ["123"]},
        "driver": {"namespaces": ["123"]},
        "profiles": {"true": {}, "1": {}},
    }
    objects = render(values, release="42", namespace="007")
    assert {m["metadata"]["namespace"] for m in objects if "namespace" in m["metadata"]} == {
        "007",
        "123",
    }
    assert objects.one("Deployment")["metadata"]["name"] == "42-sluice-operator"
    assert objects.pod["metadata"]["labels"]["app.kubernetes.io/instance"] == "42"
    assert set(objects.config["profiles"]) == {"default", "true", "1"}


def test_two_releases_do_not_meet() -> None:
    """Two operators in one cluster share no object, but for what one of them leaves out."""
    second = {"crds": {"install": False}, "rbac": {"aggregate": False}}

    def names(objects: Rendered) -> set[tuple[str, str, str]]:
        return {
            (m["kind"], m["metadata"].get("namespace", ""), m["metadata"]["name"]) for m in objects
        }

    first = names(render(NAMESPACED))
    other = names(render({**second, "watch": {"namespaces": ["other"]}}, release="sluice-two"))
    assert first & other == set()


@pytest.mark.parametrize("values", [{}, EVERYTHING], ids=["as it comes", "everything"])
def test_only_metrics_and_probes_can_be_reached(values: dict[str, Any]) -> None:
    """The network policy lets one port in, whatever else it says."""
    policy = render(values).one("NetworkPolicy")["spec"]
    assert policy["ingress"] == [{"ports": [{"protocol": "TCP", "port": "metrics"}]}]
    assert "Ingress" in policy["policyTypes"]


def test_stores_are_reachable_on_any_port_unless_told_otherwise() -> None:
    """A policy that is on by default must not cut the operator off from a store."""
    assert render().one("NetworkPolicy")["spec"]["policyTypes"] == ["Ingress"]


def test_what_the_operator_reaches_can_be_narrowed() -> None:
    """DNS, the API server and the stores, each with its own addresses and ports."""
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


def test_drivers_find_their_account() -> None:
    """The profile's ServiceAccount is the one that the chart makes, in each namespace asked for."""
    objects = render({"driver": {"namespaces": ["demo", "shop"]}})
    name = objects.config["profiles"]["default"]["serviceAccountName"]
    accounts = {
        (m["metadata"]["namespace"], m["metadata"]["name"]) for m in objects.of("ServiceAccount")
    }
    assert accounts == {
        ("demo", name),
        ("shop", name),
        (NAMESPACE, "sluice-operator"),
        (NAMESPACE, "sluice-test"),
        (NAMESPACE, "sluice-uninstall"),
    }
    for binding in objects.of("RoleBinding"):
        (subject,) = binding["subjects"]
        assert (subject["namespace"], subject["name"]) == (binding["metadata"]["namespace"], name)


def test_no_account_hands_out_its_token_by_itself() -> None:
    """Only pods that ask for it get a token; the operator's does."""
    objects = render(EVERYTHING)
    assert {m["automountServiceAccountToken"] for m in objects.of("ServiceAccount")} == {False}
    assert objects.pod["spec"]["automountServiceAccountToken"] is True


def test_nothing_of_prometheus_comes_unasked() -> None:
    """Without the Prometheus operator its kinds do not exist, so the chart makes none of them."""
    groups = {manifest["apiVersion"].partition("/")[0] for manifest in render()}
    assert "monitoring.coreos.com" not in groups


def test_alerts_ask_for_metrics_that_there_are() -> None:
    """Each metric of an alert is in the catalogue, and so is each label that it is asked by."""
    known = {metric.name: set(metric.labels) for metric in METRICS}
    (group,) = render(EVERYTHING).one("PrometheusRule")["spec"]["groups"]
    asked = asked_in(rule["expr"] for rule in group["rules"])
    assert len(asked) >= 5
    for name, labels in asked:
        assert labels <= known[name]


def asked_in(queries: Iterable[str]) -> list[tuple[str, set[str]]]:
    """The metrics that queries name, each with the labels that it is selected by."""
    return [
        (re.sub("_bucket$", "", name), set(re.findall(r"(\w+)!?=", labels)))
        for query in queries
        for name, labels in re.findall(r"\b(sluice_\w+)(?:\{([^}]*)\})?", query)
    ]


def test_the_dashboard_asks_for_metrics_that_there_are() -> None:
    """All of its metrics are in the catalogue; each panel has a number and a place of its own."""
    known = {metric.name: set(metric.labels) for metric in METRICS}
    panels = render(EVERYTHING).dashboard["panels"]
    queries = [target["expr"] for panel in panels for target in panel.get("targets", ())]
    assert len(queries) > 20
    for name, labels in asked_in(queries):
        assert labels <= known[name]
    for own in ("id", "gridPos"):
        assert len({str(panel[own]) for panel in panels}) == len(panels)


def test_grafanas_sidecar_finds_the_dashboard_by_its_label() -> None:
    """By the usual one, unless values say another; without them there is no dashboard."""
    assert [one["metadata"]["name"] for one in render().of("ConfigMap")] == ["sluice-operator"]
    for more, expected in (({}, "1"), ({"labels": {"grafana_dashboard": "yes"}}, "yes")):
        objects = render({"monitoring": {"dashboard": {"enabled": True} | more}})
        (found,) = [one for one in objects.of("ConfigMap") if "sluice.json" in one["data"]]
        assert found["metadata"]["labels"]["grafana_dashboard"] == expected


def test_alerts_say_what_is_wrong_and_what_to_do() -> None:
    """Each has a severity, a summary and a description."""
    objects = render(EVERYTHING)
    (group,) = objects.one("PrometheusRule")["spec"]["groups"]
    for rule in group["rules"]:
        assert rule["labels"]["severity"] in {"warning", "critical"}
        assert set(rule["annotations"]) == {"summary", "description"}
        assert rule["alert"].startswith("Sluice")


def test_a_sinks_header_is_a_file_of_its_secret_only() -> None:
    """The operator needs no right to read it, and it is in no setting."""
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
    """A rule without a sink would open ports for nothing."""
    notices = {"cidrs": ["192.0.2.7/32"], "ports": [443]}
    policy = {"egress": {"enabled": True, "notices": notices}}
    spec = render({"notices": {"sink": sink}, "networkPolicy": policy}).one("NetworkPolicy")["spec"]
    cidrs = [peer["ipBlock"]["cidr"] for rule in spec["egress"] for peer in rule.get("to", ())]
    assert cidrs == (["192.0.2.7/32"] if sink else [])


def test_a_sink_opens_no_way_to_every_address() -> None:
    """Tenants write addresses of stores, and egress is what keeps the operator from any of them."""
    values = {
        "notices": {"sink": "https://events.example/s"},
        "networkPolicy": {"egress": {"enabled": True}},
    }
    with pytest.raises(AssertionError, match=r"egress\.notices\.cidrs"):
        render(values)
