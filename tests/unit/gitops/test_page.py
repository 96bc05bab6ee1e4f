"""docs/gitops.md agrees with the code."""

import re
from pathlib import Path

import yaml

from sluice.api.registry import KINDS
from support.cases.golden import check
from support.gitops.argocd import health
from support.situations.situations import SITUATIONS

PAGE = Path(__file__).parents[3] / "docs" / "gitops.md"
STATES = re.compile(r"(<!-- states: .* -->\n).*(<!-- end of states -->\n)", flags=re.DOTALL)


def states() -> str:
    """Return the tables of states, with the results of kstatus and Argo CD for each state."""
    lines = []
    for kind in KINDS:
        lines += [f"| {kind.name} | kstatus | Argo CD |", "| --- | --- | --- |"]
        lines += [
            f"| {one.means} | {one.kstatus} | {health(one.body)['status']} |"
            for one in SITUATIONS
            if one.kind == kind.name
        ]
        lines.append("")
    return "\n".join(lines)


def test_the_table_of_states_is_that_of_the_tests() -> None:
    """The page has each situation, with the results of kstatus and of Sluice's Lua scripts."""
    text, count = STATES.subn(lambda found: found[1] + states() + found[2], PAGE.read_text())
    assert count == 1
    check(PAGE, text)


def test_examples_name_kinds_that_exist() -> None:
    """The page's YAML is valid, and its health checks name Sluice's kinds."""
    blocks = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    documents = [found for block in blocks for found in yaml.safe_load_all(block)]
    checked = [one for found in documents for one in found.get("spec", {}).get("healthChecks", [])]
    assert {(one["apiVersion"], one["kind"]) for one in checked} == {
        ("sluice.dev/v1alpha1", kind.name) for kind in KINDS
    }
