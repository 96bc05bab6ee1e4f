"""Differences between two plans of a query, which forbid that one continues the other's state."""

from typing import Any

import pytest

from sluice.core.query.changes import changes
from sluice.core.query.plan import Compiled, EventTime, PlannedParameter
from sluice.core.tables.columns import EventFormat, Malformed
from sluice.core.values.model import StoreAddress, StreamName
from support.engine.queries import COMPILED, query_plan, sink, source

WINDOW = "SELECT k, count(*) AS n FROM clicks GROUP BY window(ts, '1 minute'), k"
OTHER = Compiled(spark="4.3.0", columns="k STRING,n BIGINT", tree="Aggregate v")

CHANGES: dict[str, tuple[dict[str, Any], str]] = {
    "another length of windows": ({"sql": WINDOW, "compiled": OTHER}, "spec.query.sql"),
    "another text of another Spark": (
        {"sql": WINDOW, "compiled": COMPILED.model_copy(update={"spark": "4.4.0"})},
        "spec.query.sql",
    ),
    "another lateness": (
        {"sources": (source(event_time=EventTime(column="ts", lateness_ms=1)),)},
        "spec.sources[clicks].eventTime.latenessSeconds",
    ),
    "no event time": (
        {"sources": (source(event_time=None),)},
        "spec.sources[clicks].eventTime.column",
    ),
    "another schema": ({"sources": (source(columns="k INT"),)}, "spec.sources[clicks].schema"),
    "another format": (
        {"sources": (source(format=EventFormat.CSV),)},
        "spec.sources[clicks].format",
    ),
    "another delimiter": ({"sources": (source(delimiter=";"),)}, "spec.sources[clicks].delimiter"),
    "malformed events": (
        {"sources": (source(malformed=Malformed.DROP),)},
        "spec.sources[clicks].malformed",
    ),
    "another stream": (
        {"sources": (source(stream=StreamName(scope="in", stream="views")),)},
        "spec.sources[clicks].stream",
    ),
    "another name of a table": ({"sources": (source(name="views"),)}, "spec.sources[clicks]"),
    "one more source": (
        {"sources": (source(), source(name="views"))},
        "spec.sources[views]",
    ),
    "another value of a parameter": (
        {"parameters": (PlannedParameter(name="least", type="Double", value="3"),)},
        "spec.query.parameters.least",
    ),
    "other keys": ({"keys": ()}, "spec.result.keys"),
    "rows as they change": ({"emit": "Changes"}, "spec.result.emit"),
    "more segments of a sink": ({"sinks": (sink(3),)}, "spec.sinks"),
    "another engine": ({"engine": "Arrow"}, "spec.engine"),
}


@pytest.mark.parametrize(("change", "field"), CHANGES.values(), ids=CHANGES)
def test_what_decides_about_results_is_a_change(change: dict[str, Any], field: str) -> None:
    """The change names the spec's field, whichever of the plans came first."""
    assert field in [one.field for one in changes(query_plan(), query_plan(**change))]
    assert field in [one.field for one in changes(query_plan(**change), query_plan())]


SAME: dict[str, dict[str, Any]] = {
    "nothing": {},
    "a text that is only written in another way": {"sql": "select K, COUNT(*) n from clicks ..."},
    "where the first version began": {"sources": (source(begins="Tail"),)},
    "the address of a store": {"sources": (source(store=StoreAddress(uri="tcp://other:9090")),)},
    "an archive beside the stream": {
        "sources": (source(archive=StoreAddress(backend="s3", uri="s3://bucket/clicks")),)
    },
    "what another Spark makes of the same text": {
        "compiled": COMPILED.model_copy(update={"spark": "4.4.0", "tree": "Aggregate2"})
    },
}


@pytest.mark.parametrize("change", SAME.values(), ids=SAME)
def test_what_decides_about_no_result_is_none(change: dict[str, Any]) -> None:
    """Other text, addresses, beginnings or archives leave no difference, so the query continues."""
    assert changes(query_plan(), query_plan(**change)) == []


def test_lists_of_values_are_compared_by_their_texts() -> None:
    """Spark's text of a plan lacks the values of `VALUES`, so the SQL texts are compared."""
    values = COMPILED.model_copy(update={"tree": "Join\nLocalRelation [k, c]"})
    texts = ["SELECT c FROM (VALUES (1) AS t(c))", "SELECT c FROM (VALUES (2) AS t(c))"]
    before, after = (query_plan(sql=text, compiled=values) for text in texts)
    assert [one.field for one in changes(before, after)] == ["spec.query.sql"]


def test_a_change_is_said_with_both_values() -> None:
    """A change's text has both values if they are short, and only the field otherwise."""
    lateness = EventTime(column="ts", lateness_ms=1)
    (short,) = changes(query_plan(), query_plan(sources=(source(delimiter=";"),)))
    assert str(short) == "spec.sources[clicks].delimiter was ,, and is ;"
    (added,) = changes(query_plan(sources=(source(columns=None),)), query_plan())
    assert str(added) == "spec.sources[clicks].schema was added"
    (changed,) = changes(query_plan(), query_plan(sources=(source(event_time=lateness),)))
    assert str(changed) == "spec.sources[clicks].eventTime.latenessSeconds was 10, and is 0.001"
    (long,) = changes(query_plan(), query_plan(sql=WINDOW, compiled=OTHER))
    assert str(long) == "spec.query.sql was changed"


def test_equal_plans_have_one_hash_and_others_another() -> None:
    """A plan keeps its hash when it is read back from its JSON. A changed plan has another hash."""
    plan = query_plan()
    assert plan.hash == type(plan).model_validate_json(plan.canonical).hash
    assert plan.hash != query_plan(emit="Changes").hash
