"""The operator's pod and settings, as the chart makes them from its values."""

from pathlib import Path
from typing import Any

import pytest

from sluice.kube.loop.settings import ExecutorSize, OperatorSettings, PodSize, Profile
from support.kube.chart import EVERYTHING, NAMESPACE, Rendered, render


def test_the_operators_pod_is_restricted(rendered: Rendered) -> None:
    """The operator's pod satisfies the `restricted` standard. It can write to /tmp only."""
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


@pytest.mark.parametrize("replicas", [1, 2])
def test_an_upgrade_leaves_no_gap(replicas: int) -> None:
    """A new replica is ready before an old one ends. The Lease decides which replica works."""
    objects = render({"operator": {"replicas": replicas}})
    spec = objects.one("Deployment")["spec"]
    assert spec["replicas"] == replicas
    assert spec["strategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1},
    }
    assert objects.config["lease"] == {"namespace": NAMESPACE, "name": "sluice-operator"}


def test_two_replicas_are_kept_apart_and_one_holds_up_no_node() -> None:
    """Replicas prefer different nodes, and a drain evicts one at a time.

    A single replica has no budget.
    """
    objects = render()
    (preferred,) = objects.pod["spec"]["affinity"]["podAntiAffinity"][
        "preferredDuringSchedulingIgnoredDuringExecution"
    ]
    budget = objects.one("PodDisruptionBudget")["spec"]
    assert preferred["podAffinityTerm"]["labelSelector"] == budget["selector"]
    assert budget["selector"]["matchLabels"].items() <= objects.pod["metadata"]["labels"].items()
    assert budget["maxUnavailable"] == 1
    assert render({"operator": {"replicas": 1}}).of("PodDisruptionBudget") == []


def test_probes_ask_the_operator() -> None:
    """Probes ask the port on which the operator listens, by its settings."""
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
    """The operator accepts the chart's file of settings, and its arguments name the file."""
    file = tmp_path / "config.yaml"
    file.write_text(rendered.config_file)
    settings = OperatorSettings.read(file)
    (container,) = rendered.pod["spec"]["containers"]
    assert settings.image == container["image"]
    assert settings.profiles == {"default": Profile()}
    assert container["args"][-2:] == ["--config", "/etc/sluice/config.yaml"]


def test_the_values_show_every_setting_of_a_profile() -> None:
    """The default profile in values.yaml names each field, so that it documents all of them."""
    profile = render().config["profiles"]["default"]
    shown = {name: set(profile[name]) for name in ("driver", "executor")}
    assert set(profile) == {field.alias for field in Profile.model_fields.values()}
    assert shown["driver"] == {field.alias for field in PodSize.model_fields.values()}
    assert shown["executor"] == {field.alias for field in ExecutorSize.model_fields.values()}


def test_settings_reach_the_operator() -> None:
    """The values' namespaces, pull secrets, identity and profiles are in the settings."""
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
            "stores": {
                "allowed": ["tls://*.example.com:9090"],
                "requireSecretLabel": True,
                "holdSecrets": False,
            },
            "profiles": {
                "default": None,
                "large": {"slots": 8, "ttlSecondsAfterFinished": 31_536_000, "sparkConf": {}},
            },
        }
    ).config
    assert config.pop("listen")["port"] == 8080
    assert config.pop("lease")["name"] == "sluice-operator"
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
        "stores": {
            "allowed": ["tls://*.example.com:9090"],
            "requireSecretLabel": True,
            "holdSecrets": False,
        },
        "metrics": {"resources": True, "maxResources": 50_000},
        "notices": {"sink": "", "header": {"name": "Authorization", "file": ""}},
        "tracing": {
            "endpoint": "",
            "headers": {"secretName": "", "secretKey": "headers"},
            "sampler": "parentbased_always_on",
            "samplerArgument": "",
        },
        "queries": {"image": "", "gateway": ""},
        "profiles": {"large": {"slots": 8, "ttlSecondsAfterFinished": 31_536_000, "sparkConf": {}}},
    }


def test_a_change_of_settings_restarts_the_operator() -> None:
    """The pod has the settings' checksum, so only their changes restart it."""

    def checksum(values: dict[str, Any]) -> str:
        found: str = render(values).pod["metadata"]["annotations"]["sluice.dev/config-checksum"]
        return found

    before = checksum({})
    assert checksum({"profiles": {"default": {"slots": 3}}}) != before
    assert checksum({"monitoring": {"serviceMonitor": {"enabled": True}}}) == before


def test_an_image_can_be_pinned() -> None:
    """If a digest is set, it replaces the tag, for the operator and for drivers."""
    digest = "sha256:" + "0" * 64
    objects = render({"image": {"repository": "r.example/s", "tag": "1", "digest": digest}})
    assert objects.pod["spec"]["containers"][0]["image"] == f"r.example/s@{digest}"
    assert objects.config["image"] == f"r.example/s@{digest}"


def test_the_pod_can_be_placed() -> None:
    """The operator's pod takes placement, labels and annotations from the values."""
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
    """Each selector of the operator's pod matches it, and matches no driver's pod."""
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
