"""docs/operations.md names only existing metrics, alerts and values."""

import re

from sluice.core.catalogue import METRICS
from support.kube.chart import EVERYTHING, ROOT, render

PAGE = (ROOT / "docs" / "operations.md").read_text()


def first_cells(heading: str) -> list[str]:
    """Return the first column of a section's table."""
    section = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"^\| `([^`]+)` \|", section, flags=re.MULTILINE)


def test_metrics_that_are_named_exist() -> None:
    """The page names only metrics of the catalogue."""
    named = set(re.findall(r"\bsluice_[a-z_]+", PAGE))
    assert named
    assert named <= {metric.name for metric in METRICS}


def test_every_alert_is_listed() -> None:
    """The page has the chart's alerts with their severities, in the chart's order."""
    (group,) = render(EVERYTHING).one("PrometheusRule")["spec"]["groups"]
    for rule in group["rules"]:
        assert f"| `{rule['alert']}` | {rule['labels']['severity']} |" in PAGE
    assert first_cells("Alerts") == [rule["alert"] for rule in group["rules"]]


def test_values_that_are_named_exist() -> None:
    """Each value in the page's tables is in values.yaml."""
    values = [*first_cells("Install"), *first_cells("Metrics")]
    assert len(values) > 8
    text = (ROOT / "helm" / "sluice" / "values.yaml").read_text()
    for value in values:
        for part in value.split("."):
            assert re.search(rf"^\s*{part}:", text, flags=re.MULTILINE), value
