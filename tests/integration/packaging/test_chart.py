"""The objects that the chart makes from its values: names, owners, CRDs, accounts."""

from typing import Any

import pytest
import yaml

from support.kube.chart import (
    CHART,
    EVERYTHING,
    NAMESPACE,
    NAMESPACED,
    ROOT,
    VARIANTS,
    Rendered,
    lint,
    render,
)


@pytest.mark.parametrize("values", VARIANTS.values(), ids=VARIANTS.keys())
def test_helm_finds_nothing_to_complain_of(values: dict[str, Any]) -> None:
    """`helm lint --strict` passes with each variant."""
    assert lint(values) == ""


def test_the_chart_of_a_checkout_runs_the_image_of_a_checkout() -> None:
    """A checkout's chart has version 0.0.0-dev and runs the image that `make image` builds."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == ("0.0.0-dev", "dev")
    makefile = (ROOT / "Makefile").read_text()
    assert f" image {render().pod['spec']['containers'][0]['image']} ." in makefile


def test_every_object_says_whose_it_is(rendered: Rendered) -> None:
    """Each object has the chart's label with its name. Only namespaced objects name a namespace."""
    cluster_wide = {
        "ClusterRole",
        "ClusterRoleBinding",
        "CustomResourceDefinition",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    }
    for manifest in rendered:
        metadata = manifest["metadata"]
        assert metadata["labels"]["app.kubernetes.io/name"] == "sluice"
        assert ("namespace" in metadata) == (manifest["kind"] not in cluster_wide), metadata


def test_no_two_objects_have_one_name(rendered: Rendered) -> None:
    """Each object has another kind, namespace or name than all others."""
    keys = [(m["kind"], m["metadata"].get("namespace"), m["metadata"]["name"]) for m in rendered]
    assert len(keys) == len(set(keys))


def test_crds_are_the_generated_ones_and_kept() -> None:
    """The chart's CRDs are those of crds/. An annotation keeps Helm from deleting them."""
    crds = {crd["metadata"]["name"]: crd for crd in render().of("CustomResourceDefinition")}
    sources = [yaml.safe_load(path.read_text()) for path in (ROOT / "crds").glob("*.yaml")]
    assert len(sources) == len(crds) >= 2
    for source in sources:
        crd = crds[source["metadata"]["name"]]
        assert crd["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
        assert crd["spec"] == source["spec"]


def test_crds_can_be_left_out() -> None:
    """With `crds.install: false` the chart makes no CRDs, since another release may bring them."""
    assert render({"crds": {"install": False}}).of("CustomResourceDefinition") == []


def test_names_that_look_like_numbers_stay_names() -> None:
    """Releases, namespaces and profiles may have names such as 123 or true."""
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
    """Two releases in a cluster share no object, if one leaves out CRDs and roles of people."""
    second = {"crds": {"install": False}, "rbac": {"aggregate": False}}

    def names(objects: Rendered) -> set[tuple[str, str, str]]:
        return {
            (m["kind"], m["metadata"].get("namespace", ""), m["metadata"]["name"]) for m in objects
        }

    first = names(render(NAMESPACED))
    other = names(render({**second, "watch": {"namespaces": ["other"]}}, release="sluice-two"))
    assert first & other == set()


def test_drivers_find_their_account() -> None:
    """The chart makes the profile's ServiceAccount in each requested namespace."""
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
    bindings = [
        (one["metadata"]["namespace"], one["subjects"])
        for one in objects.of("RoleBinding")
        if one["metadata"]["namespace"] != NAMESPACE  # this namespace has only the operator's Lease
    ]
    assert {namespace for namespace, _ in bindings} == {"demo", "shop"}
    for namespace, (subject,) in bindings:
        assert (subject["namespace"], subject["name"]) == (namespace, name)


def test_no_account_hands_out_its_token_by_itself() -> None:
    """No ServiceAccount mounts its token into pods by default.

    The operator's pod asks for its token.
    """
    objects = render(EVERYTHING)
    assert {m["automountServiceAccountToken"] for m in objects.of("ServiceAccount")} == {False}
    assert objects.pod["spec"]["automountServiceAccountToken"] is True
