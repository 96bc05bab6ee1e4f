"""The files that are generated from the chart."""

import pytest
import yaml

import genmanifests
from support.kube.chart import NAMESPACE, ROOT, Manifest
from support.kube.pod_security import violations

INSTALL = ROOT / "manifests" / "install.yaml"
CRDS = ROOT / "manifests" / "crds.yaml"
DEV = ROOT / "manifests" / "pravega-dev.yaml"


@pytest.fixture
def install() -> list[Manifest]:
    """Return the objects of install.yaml."""
    return list(yaml.safe_load_all(INSTALL.read_text()))


def test_nothing_has_drifted() -> None:
    """The chart's CRDs and the manifests equal the output of hack/genmanifests.py."""
    made = {**genmanifests.chart_crds(), **genmanifests.manifests()}
    assert not genmanifests.stale()
    assert not list(genmanifests.differing(made))


def test_nothing_claims_to_be_helms(install: list[Manifest]) -> None:
    """Plain manifests have no mark of Helm, so that Helm does not take them for its own."""
    assert len(install) > 10
    for manifest in [*install, *yaml.safe_load_all(CRDS.read_text())]:
        text = yaml.safe_dump(manifest["metadata"])
        assert "Helm" not in text
        assert "helm.sh" not in text


def test_deleting_the_installation_keeps_the_resources(install: list[Manifest]) -> None:
    """install.yaml has no CRD, since its deletion would delete all resources.

    crds.yaml has all CRDs and nothing else.
    """
    assert "CustomResourceDefinition" not in {manifest["kind"] for manifest in install}
    crds = list(yaml.safe_load_all(CRDS.read_text()))
    sources = [yaml.safe_load(path.read_text()) for path in sorted((ROOT / "crds").glob("*.yaml"))]
    assert [crd["spec"] for crd in crds] == [source["spec"] for source in sources]


def test_the_namespace_admits_restricted_pods_only(install: list[Manifest]) -> None:
    """install.yaml begins with its namespace, which enforces `restricted`.

    All other objects with a namespace are in it.
    """
    namespace, *rest = install
    assert namespace["metadata"]["name"] == NAMESPACE
    assert (
        namespace["metadata"]["labels"].items()
        >= {
            "pod-security.kubernetes.io/enforce": "restricted",
            "pod-security.kubernetes.io/warn": "restricted",
        }.items()
    )
    assert {manifest["metadata"].get("namespace", NAMESPACE) for manifest in rest} == {NAMESPACE}


def test_the_small_pravega_is_restricted_and_publishes_its_pods_address() -> None:
    """The store's namespace admits restricted pods only. The file says: not for production."""
    text = DEV.read_text()
    assert "NOT FOR PRODUCTION" in text.splitlines()[0]
    namespace, service, deployment = yaml.safe_load_all(text)
    labels = namespace["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"
    template = deployment["spec"]["template"]
    assert violations(template["spec"]) == []
    assert service["spec"]["selector"].items() <= template["metadata"]["labels"].items()
    (container,) = template["spec"]["containers"]
    address, options = container["env"]
    assert address["valueFrom"]["fieldRef"]["fieldPath"] == "status.podIP"
    published = f"-Dpravegaservice.service.published.host.nameOrIp=$({address['name']})"
    assert published in options["value"].split()
