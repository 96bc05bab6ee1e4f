"""Fixtures for tests of the API server's own checks."""

from collections.abc import Iterator
from dataclasses import replace
from uuid import uuid4

import pytest
import yaml

import localcluster
from sluice.api.fields.common import GROUP
from sluice.api.registry import KINDS
from sluice.api.schema.schema import definition
from support.kube.apply import Applier
from support.kube.definitions import left
from support.until import PATIENTLY


@pytest.fixture(scope="module")
def applier(kube: localcluster.Cluster, definitions: list[str]) -> Iterator[Applier]:
    """Yield a client that applies resources in a namespace for one test module alone."""
    name = f"crds-{uuid4().hex[:12]}"
    kube.kubectl("create", "namespace", name)
    yield Applier(kube, name)
    kube.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture(scope="module")
def unwatched(kube: localcluster.Cluster, applier: Applier) -> Applier:
    """Return a client that applies resources of a group without an operator.

    The group has copies of Sluice's definitions.
    """
    group = f"test-{uuid4().hex[:12]}.{GROUP}"
    copies = [left(definition(kind)) for kind in KINDS]
    for copy in copies:
        copy["metadata"]["name"] = f"{copy['spec']['names']['plural']}.{group}"
        copy["spec"]["group"] = group
        for names in ("shortNames", "categories"):
            del copy["spec"]["names"][names]
    text = yaml.safe_dump_all(copies)
    names = kube.kubectl("create", "--filename=-", "--output=name", stdin=text).split()
    kube.kubectl("wait", "--for=condition=Established", PATIENTLY, *names)
    return replace(applier, group=group)
