"""Each kind of store is whole: its record, its part of the spec, and the code that opens it."""

from typing import Any, get_args

import pytest

from sluice.api.fields.backends import (
    BACKENDS,
    UNNAMED,
    Backend,
    BackendName,
    Holds,
    holding,
    kind_of,
)
from sluice.api.fields.stores.part import StorePart
from sluice.api.kinds.streamstore import StreamStoreSpec
from sluice.core.values.model import StoreAddress
from sluice.engine.access import connect as archives
from sluice.stores import connect as live

SMALLEST = {
    "pravega": {"controllerURI": "tcp://here:9090"},
    "s3": {"bucket": "archives"},
    "volume": {"claimName": "shelf"},
}
"""The smallest part of the spec of each kind of store."""

KINDS = pytest.mark.parametrize("kind", BACKENDS.values(), ids=BACKENDS)


def part_of(kind: Backend) -> StorePart:
    """Return the smallest part of the spec."""
    spec = StreamStoreSpec.model_validate({kind.name: SMALLEST[kind.name]})
    part: StorePart = getattr(spec, kind.name)
    return part


def test_each_name_has_a_record() -> None:
    """The records are those of the names, and addresses without a name are of one of them."""
    assert tuple(BACKENDS) == get_args(BackendName)
    assert StoreAddress(uri="tcp://here:9090").backend == UNNAMED


@KINDS
def test_the_fields_that_errors_name_exist(kind: Backend) -> None:
    """Each field of the record is one of the kind's own part of the spec."""
    schema = StreamStoreSpec.model_json_schema()
    named = (kind.secret_field, kind.server_field, kind.ca_field, kind.client_field)
    for path in filter(None, (*named, kind.claim_field)):
        spec, part, *_ = path.split(".")
        assert (spec, part) == ("spec", kind.name)
        assert has(schema, schema, path.split(".")[1:]), path


def has(schema: dict[str, Any], at: dict[str, Any], path: list[str]) -> bool:
    """Tell whether a schema has a field, in any of the alternatives of the fields on the way."""
    if not path:
        return True
    shapes = [at, *at.get("anyOf", ()), *at.get("allOf", ())]
    shapes += [schema["$defs"][one["$ref"].rpartition("/")[2]] for one in shapes if one.get("$ref")]
    found = [one["properties"][path[0]] for one in shapes if path[0] in one.get("properties", ())]
    return any(has(schema, one, path[1:]) for one in found)


@KINDS
def test_an_address_in_the_spec_has_a_form_of_its_kind(kind: Backend) -> None:
    """So the kind of an address that is typed is that of the same address in a StreamStore."""
    uri = part_of(kind).entry.uri
    assert kind.has_form(uri)
    assert kind_of(uri, kind.holds) is kind


def test_a_directory_is_a_volume_and_another_address_of_the_first_kind() -> None:
    """What opens the first kind of store refuses it."""
    assert kind_of("file:///tmp", Holds.ARCHIVES) is BACKENDS["volume"]
    assert kind_of("https://here", Holds.ARCHIVES) is BACKENDS["s3"]
    assert kind_of("s3://archives", Holds.LIVE) is BACKENDS["pravega"]


def test_a_spec_may_name_a_server_and_nothing_else() -> None:
    """The command that makes a StreamStore from an address makes a valid one."""
    for kind in holding(Holds.LIVE):
        uri = part_of(kind).entry.uri
        spec = StreamStoreSpec.model_validate(kind.part_at(uri))
        assert spec.entry.uri == uri


def test_each_kind_can_be_opened_in_one_way() -> None:
    """A store of live streams has a client, and a store of archives has objects."""
    assert list(live._CLIENTS) == [one.name for one in holding(Holds.LIVE)]
    assert list(archives._OPENERS) == [one.name for one in holding(Holds.ARCHIVES)]
