"""The pod that `helm test` runs, with its account and rights."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner

from sluice import cli
from sluice.administration.installation import Right
from sluice.commands import installation
from support.kube.chart import EVERYTHING, NAMESPACE, NAMESPACED, Rendered, render, rules
from support.kube.pod_security import violations

SCRAPED = {"networkPolicy": {"ingress": {"from": [{"podSelector": {}}]}}}


def hook(**values: Any) -> Rendered:
    """Return the objects that exist only during the test."""
    return Rendered(
        found
        for found in render(values)
        if found["metadata"].get("annotations", {}).get("helm.sh/hook") == "test"
    )


@pytest.mark.parametrize(
    "values", [{}, EVERYTHING, NAMESPACED, SCRAPED], ids=["plain", "all", "some", "scraped"]
)
def test_all_of_it_comes_and_goes_with_the_test(values: dict[str, Any]) -> None:
    """Helm makes account and roles before the pod. It deletes each once the test has passed."""
    objects = hook(**values)
    weights = {}
    for found in objects:
        notes = found["metadata"]["annotations"]
        assert found["metadata"]["name"] == "sluice-test"
        assert found["metadata"]["labels"]["app.kubernetes.io/component"] == "test"
        assert notes["helm.sh/hook-delete-policy"] == "before-hook-creation,hook-succeeded"
        weights[found["kind"]] = int(notes["helm.sh/hook-weight"])
    assert weights.pop("Pod") > max(weights.values())
    assert weights.keys() >= {"ServiceAccount"}


def test_the_pod_is_restricted_and_placed_as_the_operators() -> None:
    """The test's pod has the operator's image, place and confinement.

    It runs once, and its log is shown.
    """
    values = {
        "operator": {"nodeSelector": {"kubernetes.io/os": "linux"}},
        "imagePullSecrets": [{"name": "registry"}],
    }
    pod, operator = hook(**values).one("Pod"), render(values).pod["spec"]
    spec = pod["spec"]
    assert violations(spec) == []
    for name in ("securityContext", "nodeSelector", "imagePullSecrets", "enableServiceLinks"):
        assert spec[name] == operator[name]
    (container,) = spec["containers"]
    for name in ("securityContext", "image", "imagePullPolicy", "env"):
        assert container[name] == operator["containers"][0][name]
    assert spec["restartPolicy"] == "Never"
    assert container["terminationMessagePolicy"] == "FallbackToLogsOnError"
    logs = pod["metadata"]["annotations"]["helm.sh/hook-output-log-policy"]
    assert logs == "hook-succeeded,hook-failed"


@pytest.mark.parametrize(
    ("values", "kind", "resource"),
    [
        ({}, "ClusterRole", "subjectaccessreviews"),
        (NAMESPACED, "Role", "localsubjectaccessreviews"),
    ],
    ids=["cluster", "namespaces"],
)
def test_it_may_ask_for_rights_and_nothing_else(
    values: dict[str, Any], kind: str, resource: str
) -> None:
    """The test's own account may only ask about rights, where the operator has some."""
    objects = hook(**values)
    assert {found["kind"] for found in objects if found["kind"].endswith("Role")} == {kind}
    assert set(rules(objects, "sluice-test")) == {("authorization.k8s.io", resource, "create", "")}
    served = values.get("watch", {}).get("namespaces")
    places = {*served, NAMESPACE} if served else {None}
    assert {role["metadata"].get("namespace") for role in objects.of(kind)} == places
    assert objects.one("Pod")["spec"]["serviceAccountName"] == "sluice-test"


def test_it_reaches_an_operator_that_admits_scrapers_only() -> None:
    """During the test, a network policy opens the operator's port to the test's pod only."""
    assert hook().of("NetworkPolicy") == []
    objects = hook(**SCRAPED)
    policy = objects.one("NetworkPolicy")["spec"]
    (rule,) = policy["ingress"]
    (peer,) = rule["from"]
    selected = peer["podSelector"]["matchLabels"].items()
    assert selected <= objects.one("Pod")["metadata"]["labels"].items()
    operator = render(SCRAPED).pod["metadata"]["labels"].items()
    assert policy["podSelector"]["matchLabels"].items() <= operator
    assert not selected <= operator
    off = {"networkPolicy": {"enabled": False, **SCRAPED["networkPolicy"]}}
    assert hook(**off).of("NetworkPolicy") == []


@pytest.mark.parametrize("values", [{}, NAMESPACED], ids=["cluster", "namespaces"])
def test_the_program_takes_its_arguments(
    monkeypatch: pytest.MonkeyPatch, values: dict[str, Any]
) -> None:
    """The test asks for each right of the operator's roles, in the namespaces that it serves."""
    given: list[Any] = []

    async def asked(*words: str, **others: Any) -> list[str]:
        given.extend([*words, *others.values()])
        return []

    monkeypatch.setattr(installation, "_problems", asked)
    spec = hook(**values).one("Pod")["spec"]
    program, *arguments = spec["containers"][0]["args"]
    assert program == "sluice"
    done = CliRunner().invoke(cli.cli, arguments)
    assert done.exit_code == 0, done.output
    probe, account, rights, own_rights, namespaces, timeout = given
    objects = render(values)
    service = objects.one("Service")["metadata"]["name"]
    assert probe == f"http://{service}.{NAMESPACE}.svc:8080/readyz"
    assert account == f"{NAMESPACE}/sluice-operator"
    granted = {*rules(objects, "sluice-operator"), *rules(objects, "sluice-usual-owners")}
    assert set(rights) == set(map(Right._make, granted))
    assert len(set(rights)) == len(rights)
    assert set(own_rights) == set(map(Right._make, rules(objects, "sluice-operator-lease")))
    assert namespaces == tuple(values.get("watch", {}).get("namespaces", ()))
    assert timeout < spec["activeDeadlineSeconds"]


@pytest.mark.parametrize("rules_given", ["no JSON", "{}", "[1]", '[{"verbs": ["get"]}]', "null"])
def test_rules_that_are_none_are_refused(rules_given: str) -> None:
    """A malformed `--rules` exits with code 2, and the message names the argument."""
    words = ["check-installation", "--probe=http://x", "--account=a/b", f"--rules={rules_given}"]
    words.append('--own-rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]')
    done = CliRunner().invoke(cli.cli, words)
    assert done.exit_code == 2
    assert "--rules" in done.output
