"""StreamQueries in files are checked before any store is asked."""

import re
from pathlib import Path
from typing import Any

import pytest

from sluice.api.load import load
from sluice.core.query.allowed import FUNCTIONS
from sluice.core.query.request import query_id, query_request
from sluice.core.values.model import StoreAddress, StreamName
from sluice.errors import InvalidSpec
from support.store.counts import manifest

CLICKS = StreamName(scope="shop", stream="clicks")
DOCS = Path(__file__).parents[3] / "docs"
URI = "tcp://127.0.0.1:9090"
STREAM = {"storeRef": {"name": "main"}, "scope": "shop", "stream": "clicks"}
TWO = [{"name": name, "stream": {**STREAM, "stream": name}, "format": "Text"} for name in "ab"]


def test_a_good_file_is_read() -> None:
    """Defaults are set, and the request has the addresses of the stores of sources and sinks."""
    resources = load(manifest(URI, CLICKS), copies=False)
    (query,) = resources.queries
    spec = query.spec
    assert (spec.on_change, spec.result.emit, spec.trigger.interval_seconds) == (
        "Refuse",
        "Final",
        1,
    )
    address = StoreAddress(uri=URI)
    request = query_request(query, lambda _field, _place: address, cluster="local")
    (planned,) = request.sources
    assert (planned.begins, planned.stream, planned.store) == ("Head", CLICKS, address)
    assert planned.event_time is not None
    assert planned.event_time.lateness_ms == 0
    (sink,) = request.sinks
    assert (str(sink.stream), sink.segments) == ("shop/counts", 2)


def test_a_query_is_known_by_its_name_and_where_its_results_go() -> None:
    """Another SQL text or mode keeps the query's identity; another name or sink changes it."""

    def identity(**changes: Any) -> str:
        (query,) = load(manifest(URI, CLICKS, **changes), copies=False).queries
        return query_id(query, cluster="local")

    assert identity() == identity(query__sql="SELECT 1", mode="Continuous")
    others = [{"name": "other"}, {"sinks__0__stream__stream": "more"}]
    assert len({identity(), *(identity(**one) for one in others)}) == 3


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no source": ({"sources": []}, "spec.sources"),
    "nine sources": (
        {"sources": [{**TWO[0], "name": f"s{at}"} for at in range(9)]},
        "spec.sources",
    ),
    "a table's name that is none": ({"sources__0__name": "my clicks"}, "spec.sources[0].name"),
    "a table's name with a quote": ({"sources__0__name": "a`b"}, "spec.sources[0].name"),
    "two tables of one name": ({"sources": [TWO[0], {**TWO[1], "name": "A"}]}, "spec"),
    "one stream twice": ({"sources": [TWO[0], {**TWO[0], "name": "b"}]}, "spec"),
    "another format": ({"sources__0__format": "Avro"}, "spec.sources[0].format"),
    "a stream's name that is none": (
        {"sources__0__stream__stream": "a b"},
        "spec.sources[0].stream.stream",
    ),
    "a beginning that is none": ({"sources__0__from": {"at": "Tail"}}, "spec.sources[0].from.at"),
    "a cut without its text": ({"sources__0__from": {"at": "StreamCut"}}, "spec.sources[0].from"),
    "a schema in JSON": ({"sources__0__schema": '{"type": "struct"}'}, "spec.sources[0].schema"),
    "a quote between values": ({"sources__0__delimiter": '"'}, "spec.sources[0].delimiter"),
    "two delimiters": ({"sources__0__delimiter": ";;"}, "spec.sources[0].delimiter"),
    "malformed events kept": ({"sources__0__malformed": "Rescue"}, "spec.sources[0].malformed"),
    "negative lateness": (
        {"sources__0__eventTime__latenessSeconds": -1},
        "spec.sources[0].eventTime.latenessSeconds",
    ),
    "lateness as a text": (
        {"sources__0__eventTime__latenessSeconds": "10s"},
        "spec.sources[0].eventTime.latenessSeconds",
    ),
    "event time without a column": (
        {"sources__0__eventTime": {"latenessSeconds": 1}},
        "spec.sources[0].eventTime.column",
    ),
    "no text": ({"query__sql": ""}, "spec.query.sql"),
    "a text without end": ({"query__sql": "x" * (64 << 10) + "x"}, "spec.query.sql"),
    "a parameter of no type": (
        {"query__parameters": [{"name": "a", "type": "Date", "value": "1"}]},
        "spec.query.parameters[0].type",
    ),
    "a parameter twice": (
        {"query__parameters": [{"name": "a", "type": "String", "value": v} for v in "12"]},
        "spec",
    ),
    "a key that is no name": ({"result__keys": ["a, b"]}, "spec.result.keys[0]"),
    "rows that are all written again": ({"result__emit": "Complete"}, "spec.result.emit"),
    "no sink": ({"sinks": []}, "spec.sinks"),
    "one sink twice": ({"sinks": [{"stream": STREAM | {"stream": "x"}}] * 2}, "spec"),
    "its own results": ({"sinks__0__stream__stream": "clicks"}, "spec"),
    "a sink of the store's own": (
        {"sinks__0__stream__stream": "_RGx"},
        "spec.sinks[0].stream.stream",
    ),
    "no segment": ({"sinks__0__stream__segments": 0}, "spec.sinks[0].stream.segments"),
    "another mode": ({"mode": "Snapshot"}, "spec.mode"),
    "batches before the last": ({"trigger__intervalSeconds": -1}, "spec.trigger.intervalSeconds"),
    "rare batches": ({"trigger__intervalSeconds": 3601}, "spec.trigger.intervalSeconds"),
    "tiny batches": ({"limits__batchBytes": "1Ki"}, "spec.limits.batchBytes"),
    "a change that is none": ({"onChange": "Ignore"}, "spec.onChange"),
    "an unknown field": ({"engine": {"name": "shared"}}, "spec.engine"),
    "a login in the spec": (
        {"sources__0__stream__password": "secret"},
        "spec.sources[0].stream.password",
    ),
}


@pytest.mark.parametrize(("change", "field"), WRONG.values(), ids=WRONG)
def test_a_wrong_spec_is_refused_with_its_field(change: dict[str, Any], field: str) -> None:
    """The error shows the field but not the value, which may be a password."""
    with pytest.raises(InvalidSpec) as caught:
        load(manifest(URI, CLICKS, **change), copies=False)
    assert caught.value.field == field
    assert "secret" not in str(caught.value)


def test_two_queries_of_one_name_are_refused() -> None:
    """A second query of the same name raises InvalidSpec, as a second copy does."""
    _, query = manifest(URI, CLICKS).split("---\n")
    with pytest.raises(InvalidSpec, match="two StreamQueries 'counts'"):
        load(f"{manifest(URI, CLICKS)}---\n{query}", copies=False)


def test_the_guide_lists_the_functions_that_a_query_may_call() -> None:
    """The list in `docs/streamquery.md` equals the functions that the program allows."""
    listed = (DOCS / "streamquery.md").read_text(encoding="utf-8").partition("\n## Functions\n")[2]
    assert sorted(re.findall(r"`(\w+)`", listed)) == sorted(FUNCTIONS)


def test_the_guides_first_example_is_a_query() -> None:
    """The first YAML block of `docs/streamquery.md` is read without a change."""
    text = (DOCS / "streamquery.md").read_text(encoding="utf-8").split("```yaml\n")[1]
    (query,) = load(text.partition("```")[0], copies=False).queries
    assert query.metadata.name == "clicks-per-minute"


def test_a_live_sink_is_another_query_than_one_that_stays() -> None:
    """Else the deletion of the one could delete the rows of the other."""
    place = {"storeRef": {"name": "main"}, "scope": "shop", "stream": "counts"}

    def identity(sink: dict[str, Any]) -> str:
        (query,) = load(manifest(URI, CLICKS, sinks=[sink]), copies=False).queries
        return query_id(query, cluster="local")

    live = identity({"live": place})
    assert live != identity({"stream": place})
    assert live == identity({"live": {**place, "keepSeconds": 60}})
