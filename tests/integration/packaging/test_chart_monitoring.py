"""The alerts and the dashboard that the chart makes."""

import re
from collections.abc import Iterable

from sluice.core.catalogue import METRICS
from support.kube.chart import EVERYTHING, render

OF_TARGETS = {"job", "namespace"}
"""Labels that Prometheus gives all metrics of a release."""


def test_nothing_of_prometheus_comes_unasked() -> None:
    """Without the Prometheus operator its kinds do not exist, so the chart makes none of them."""
    groups = {manifest["apiVersion"].partition("/")[0] for manifest in render()}
    assert "monitoring.coreos.com" not in groups


def test_alerts_ask_for_metrics_that_there_are() -> None:
    """Each metric of an alert is in the catalogue, and so is each label that selects it."""
    known = {metric.name: set(metric.labels) for metric in METRICS}
    (group,) = render(EVERYTHING).one("PrometheusRule")["spec"]["groups"]
    asked = asked_in(rule["expr"] for rule in group["rules"])
    assert len(asked) >= 5
    for name, labels in asked:
        assert labels - OF_TARGETS <= known[name]


def asked_in(queries: Iterable[str]) -> list[tuple[str, set[str]]]:
    """Return the metrics that queries name, each with the labels that select it."""
    return [
        (re.sub("_bucket$", "", name), set(re.findall(r"(\w+)!?=", labels)))
        for query in queries
        for name, labels in re.findall(r"\b(sluice_\w+)(?:\{([^}]*)\})?", query)
    ]


def test_the_dashboard_asks_for_metrics_that_there_are() -> None:
    """All metrics of the dashboard are in the catalogue.

    No two panels share a number or a place.
    """
    known = {metric.name: set(metric.labels) for metric in METRICS}
    panels = render(EVERYTHING).dashboard["panels"]
    queries = [target["expr"] for panel in panels for target in panel.get("targets", ())]
    assert len(queries) > 20
    for name, labels in asked_in(queries):
        assert labels <= known[name]
    for own in ("id", "gridPos"):
        assert len({str(panel[own]) for panel in panels}) == len(panels)


def test_grafanas_sidecar_finds_the_dashboard_by_its_label() -> None:
    """The dashboard has the sidecar's usual label, or the one in the values.

    It is off by default.
    """
    assert [one["metadata"]["name"] for one in render().of("ConfigMap")] == ["sluice-operator"]
    for more, expected in (({}, "1"), ({"labels": {"grafana_dashboard": "yes"}}, "yes")):
        objects = render({"monitoring": {"dashboard": {"enabled": True} | more}})
        (found,) = [one for one in objects.of("ConfigMap") if "sluice.json" in one["data"]]
        assert found["metadata"]["labels"]["grafana_dashboard"] == expected


def test_alerts_say_what_is_wrong_and_what_to_do() -> None:
    """Each alert has a severity, a summary and a description."""
    objects = render(EVERYTHING)
    (group,) = objects.one("PrometheusRule")["spec"]["groups"]
    for rule in group["rules"]:
        assert rule["labels"]["severity"] in {"info", "warning", "critical"}
        assert set(rule["annotations"]) == {"summary", "description"}
        assert rule["alert"].startswith("Sluice")
