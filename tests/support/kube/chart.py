"""The Helm chart in a test's view: values in, objects out."""

from __future__ import annotations

import json
import subprocess
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from localcluster.tools import helm

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT = Path(__file__).parents[3]
CHART = ROOT / "helm" / "sluice"
NAMESPACE = "sluice-system"

_SECONDS = 60
_Loader = yaml.CSafeLoader  # many times as fast as the loader in Python

Manifest = dict[str, Any]

EVERYTHING: Mapping[str, Any] = {
    "admission": {"enabled": True},
    "stores": {"allowed": ["tls://*.example.com:9090", "https://s3.eu-west-1.amazonaws.com"]},
    "imagePullSecrets": [{"name": "registry"}],
    "driver": {"namespaces": ["demo"]},
    "networkPolicy": {
        "egress": {
            "enabled": True,
            "notices": {"cidrs": ["192.0.2.7/32"]},
            "tracing": {"cidrs": ["192.0.2.8/32"]},
        }
    },
    "notices": {"sink": "https://events.example/sluice", "header": {"secretName": "sink"}},
    "tracing": {
        "endpoint": "https://traces.example:4318",
        "headers": {"secretName": "traces"},
        "sampler": "parentbased_traceidratio",
        "samplerArgument": "0.1",
    },
    "monitoring": {
        "serviceMonitor": {"enabled": True},
        "prometheusRule": {"enabled": True},
        "dashboard": {"enabled": True},
    },
}
"""Values that switch on all parts that are off by default."""

NAMESPACED: Mapping[str, Any] = {"watch": {"namespaces": ["demo", "shop"]}}
"""Values for an operator that serves two namespaces."""

VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "as it comes": {},
    "everything": EVERYTHING,
    "two namespaces": NAMESPACED,
    "two namespaces, own cluster id": NAMESPACED | {"clusterID": "paris"},
    "without CRDs and roles for people": {"crds": {"install": False}, "rbac": {"aggregate": False}},
    "no network policy": {"networkPolicy": {"enabled": False}},
}
"""Values of each kind, by a name."""


class Rendered(list[Manifest]):
    """The objects that the chart makes of some values."""

    def of(self, kind: str) -> list[Manifest]:
        """Return all objects of a kind."""
        return [manifest for manifest in self if manifest["kind"] == kind]

    def one(self, kind: str) -> Manifest:
        """Return the only object of its kind."""
        (manifest,) = self.of(kind)
        return manifest

    def named(self, kind: str, name: str) -> Manifest:
        """Return the only object of a kind and a name."""
        (manifest,) = (found for found in self.of(kind) if found["metadata"]["name"] == name)
        return manifest

    @property
    def config(self) -> Manifest:
        """The operator's settings."""
        settings: Manifest = yaml.safe_load(self.config_file)
        return settings

    @property
    def config_file(self) -> str:
        """The file with the operator's settings."""
        maps = [one["data"] for one in self.of("ConfigMap")]
        (text,) = [data["config.yaml"] for data in maps if "config.yaml" in data]
        return str(text)

    @property
    def dashboard(self) -> Manifest:
        """The dashboard, as Grafana imports it."""
        maps = [one["data"] for one in self.of("ConfigMap")]
        (text,) = [data["sluice.json"] for data in maps if "sluice.json" in data]
        found: Manifest = json.loads(text)
        return found

    @property
    def pod(self) -> Manifest:
        """The operator's pod."""
        template: Manifest = self.one("Deployment")["spec"]["template"]
        return template


def render(
    values: Mapping[str, Any] | None = None, *, release: str = "sluice", namespace: str = NAMESPACE
) -> Rendered:
    """Return the output of `helm template` for the chart.

    Raises:
        AssertionError: Helm refuses the values.
    """
    done = _template(values, release, namespace)
    assert done.returncode == 0, done.stderr
    return Rendered(found for found in yaml.load_all(done.stdout, _Loader) if found)


def refusal(values: Mapping[str, Any]) -> str:
    """Return Helm's refusal of values; empty if it accepts them."""
    done = _template(values, "sluice", NAMESPACE)
    return done.stderr if done.returncode else ""


def lint(values: Mapping[str, Any]) -> str:
    """Return the findings of `helm lint`, with warnings as errors; empty if there are none."""
    command = [helm(), "lint", "--strict", "--quiet", CHART, "--values=-"]
    done = _run(command, values)
    return done.stdout + done.stderr if done.returncode else ""


def rules(objects: Rendered, name: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield the rights of roles of a name, as (group, resource, verb, object's name or nothing)."""
    for role in [*objects.of("Role"), *objects.of("ClusterRole")]:
        for rule in role["rules"] if role["metadata"]["name"] == name else ():
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    for verb in rule["verbs"]:
                        for only in rule.get("resourceNames", [""]):
                            yield group, resource, verb, only


def _template(
    values: Mapping[str, Any] | None, release: str, namespace: str
) -> subprocess.CompletedProcess[str]:
    command = [helm(), "template", release, CHART, f"--namespace={namespace}", "--values=-"]
    return _run([*command, "--kube-version=1.34.0"], values)


def _run(
    command: list[str | Path], values: Mapping[str, Any] | None
) -> subprocess.CompletedProcess[str]:
    return _ran(tuple(map(str, command)), yaml.safe_dump(dict(values or {})))


@cache
def _ran(command: tuple[str, ...], text: str) -> subprocess.CompletedProcess[str]:
    """Run a command once, since the chart does not change and many tests need the same output."""
    return subprocess.run(
        command, check=False, input=text, capture_output=True, text=True, timeout=_SECONDS
    )
