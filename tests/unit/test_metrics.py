import pytest

from sluice.core.catalogue import METRICS
from sluice.metrics import Metrics


def lines(metrics: Metrics) -> list[str]:
    """Return the lines of a scrape."""
    return metrics.text().decode().splitlines()


def test_every_metric_of_the_catalogue_is_exported() -> None:
    """A scrape has its text and its kind before anything has happened."""
    found = lines(Metrics())
    for metric in METRICS:
        assert f"# HELP {metric.name} {metric.means}" in found
        assert f"# TYPE {metric.name} {metric.kind}" in found


def test_every_metric_can_be_set_with_its_labels() -> None:
    """Counters, gauges and histograms are scraped with their values."""
    metrics = Metrics()
    for metric in METRICS:
        labels = dict.fromkeys(metric.labels, "x")
        match metric.kind:
            case "gauge":
                metrics.set(metric.name, 3, **labels)
            case "counter":
                metrics.count(metric.name, 3, **labels)
            case _:
                metrics.observe(metric.name, 3, **labels)
    found = lines(metrics)
    for metric in METRICS:
        suffix = "_sum" if metric.kind == "histogram" else ""
        labels = ",".join(f'{label}="x"' for label in sorted(metric.labels))
        where = f"{{{labels}}}" if labels else ""
        assert f"{metric.name}{suffix}{where} 3.0" in found


def test_names_follow_the_rules() -> None:
    """Names have one prefix and are unique. Counters end in _total, histograms in _seconds."""
    names = [metric.name for metric in METRICS]
    assert len(set(names)) == len(names)
    for metric in METRICS:
        assert metric.name.startswith("sluice_")
        assert metric.name.endswith("_total") == (metric.kind == "counter")
        assert metric.name.endswith("_seconds") or metric.kind != "histogram"
        assert metric.means.endswith(".")


def test_counts_add_up() -> None:
    """A gauge has its last value, and a counter has a sum."""
    metrics = Metrics()
    for _ in range(2):
        metrics.count("sluice_copied_bytes_total", 21)
        metrics.set("sluice_copies", 7, kind="StreamCopy", state="Active")
    found = lines(metrics)
    assert "sluice_copied_bytes_total 42.0" in found
    assert 'sluice_copies{kind="StreamCopy",state="Active"} 7.0' in found


def test_a_metric_that_is_not_in_the_catalogue_is_none() -> None:
    """A name without a description cannot be used."""
    with pytest.raises(KeyError):
        Metrics().count("sluice_surprises_total")


def test_two_operators_in_a_process_count_apart() -> None:
    """Tests and tools may have several."""
    first, second = Metrics(), Metrics()
    first.count("sluice_copied_bytes_total", 1)
    assert "sluice_copied_bytes_total 0.0" in lines(second)
