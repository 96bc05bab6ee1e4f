"""The StreamStores that a file's copies and archives name, on either side."""

from __future__ import annotations

from typing import Any

import pytest

from sluice.api.load import load
from sluice.errors import InvalidSpec
from sluice.pipelines.programs.jobs import all_jobs
from support.cases.resources import ARCHIVE, BUCKET, COPY, SCOPE, STORE, changed, text
from support.store.inline import SETTINGS

LIVE = {"storeRef": {"name": "local"}, "scope": "in", "stream": "orders"}


def archived(store: str) -> dict[str, Any]:
    """Return archives in a store."""
    return {"archive": {"storeRef": {"name": store}, "path": "in"}}


@pytest.mark.parametrize(
    ("body", "path", "value", "field"),
    [
        (COPY, "spec.source", archived("local"), "spec.source.archive.storeRef.name"),
        (COPY, "spec.target.storeRef.name", "archives", "spec.target.storeRef.name"),
        (COPY, "spec.source.storeRef.name", "gone", "spec.source.storeRef.name"),
        (SCOPE, "spec.source", archived("local"), "spec.source.archive.storeRef.name"),
        (SCOPE, "spec.target", archived("gone"), "spec.target.archive.storeRef.name"),
        (SCOPE, "spec.source.storeRef.name", "archives", "spec.source.storeRef.name"),
        (ARCHIVE, "spec.source.storeRef.name", "archives", "spec.source.storeRef.name"),
        (ARCHIVE, "spec.destination.storeRef.name", "local", "spec.destination.storeRef.name"),
    ],
)
def test_a_store_that_is_not_there_or_of_another_kind_is_named(
    body: dict[str, Any], path: str, value: object, field: str
) -> None:
    """The error names the field, and comes before any call to the store."""
    found = load(text(STORE, BUCKET, changed(body, path, value)))
    with pytest.raises(InvalidSpec) as caught:
        all_jobs(found, SETTINGS)
    assert caught.value.field == field


def test_of_several_sources_the_one_is_named() -> None:
    """The error has its place among them."""
    several = changed(COPY, "spec.sources", [LIVE, LIVE | {"storeRef": {"name": "gone"}}])
    del several["spec"]["source"]
    with pytest.raises(InvalidSpec) as caught:
        all_jobs(load(text(STORE, several)), SETTINGS)
    assert caught.value.field == "spec.sources[1].storeRef.name"
