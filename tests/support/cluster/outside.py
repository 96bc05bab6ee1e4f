"""Namespaces for operators that are processes of this machine, beside one in the cluster."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import yaml

from localcluster.release import NAMESPACE
from support.until import PATIENTLY, until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from localcluster import Cluster

OUTSIDE: Final = "outside-"
"""Prefix of the namespaces that operators outside of the cluster serve."""

EXCLUDED: Final = f"{OUTSIDE}*"
"""Pattern of the namespaces that an installed operator must not touch during such tests."""

_THERE = f"--namespace={NAMESPACE}"
_INSTALLED = ("deployment", "sluice-operator", _THERE)
_CONFIG = ("configmap", "sluice-operator", _THERE)
_PODS = ("pods", "--selector=app.kubernetes.io/component=operator", _THERE)


@contextmanager
def nobody_else(kube: Cluster) -> Iterator[None]:
    """Keep operators that are installed in the cluster from our namespaces during the block.

    The tests' operator leaves these alone. Another one, such as the demo's, is stopped.
    """

    def installed() -> list[str] | None:
        """Return both objects, or empty texts; None while Helm has only one of them."""
        ask = ("--output=json", "--ignore-not-found")
        found = [kube.kubectl("get", *one, *ask) for one in (_INSTALLED, _CONFIG)]
        return found if all(found) or not any(found) else None

    found = until("Sluice is installed or not, and not halfway", installed)
    assert found is not None
    there, config = found
    if not there or not _serves_ours(json.loads(config)["data"]["config.yaml"]):
        yield
        return
    before = kube.kubectl("get", *_INSTALLED, "--output=jsonpath={.spec.replicas}")
    kube.kubectl("scale", *_INSTALLED, "--replicas=0")
    kube.kubectl("wait", *_PODS, "--for=delete", PATIENTLY)
    try:
        yield
    finally:
        kube.kubectl("scale", *_INSTALLED, f"--replicas={before}")


def _serves_ours(config: str) -> bool:
    """Tell whether an operator of this configuration serves namespaces of operators outside.

    One that is to be uninstalled by a test serves the namespace of this test only.
    """
    settings = yaml.safe_load(config)
    listed: list[str] = settings["namespaces"]
    if listed:
        return any(one.startswith(OUTSIDE) for one in listed)
    return EXCLUDED not in settings["excludedNamespaces"]
