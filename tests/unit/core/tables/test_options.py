"""Options of tables by their names, and errors that never show a value."""

from __future__ import annotations

from typing import Any

import pytest

from sluice.core.tables.columns import EventFormat
from sluice.core.tables.options import TableOptions
from sluice.errors import InvalidSpec

STORE = {"store": "tcp://h:9090", "stream": "shop/clicks"}
MARK = "Marked-Secret-1"


def test_names_of_python_and_of_spark_are_the_same_options() -> None:
    """Spark's names are camelCase and may come in lower case. Python's have underscores."""
    expected = TableOptions(store="tcp://h:9090", stream="a/b", max_bytes_per_trigger=5)
    for name in ("maxBytesPerTrigger", "maxbytespertrigger", "max_bytes_per_trigger"):
        given = {"store": "tcp://h:9090", "STREAM": "a/b", name: "5"}
        assert TableOptions.read(given) == expected


def test_addresses_name_secrets_and_have_none() -> None:
    """The place of the events names the Secrets of both stores."""
    place = TableOptions.read(
        {
            **STORE,
            "secret": "main",
            "serverName": "pravega",
            "archive": "s3://bucket/shop/clicks",
            "archiveSecret": "keys",
            "archiveEndpoint": "https://s3.example",
            "archiveRun": "7",
        }
    ).place
    assert place.store is not None
    assert (place.store.secret, place.store.server_name) == ("main", "pravega")
    assert place.archive is not None
    assert (place.archive.backend, place.archive.secret) == ("s3", "keys")
    assert place.archive.endpoint == "https://s3.example"
    assert place.run == 7
    local = TableOptions.read({"archive": "file:///backup"}).place
    assert (local.store, local.stream) == (None, None)
    assert local.archive is not None
    assert local.archive.backend == "volume"


@pytest.mark.parametrize(
    ("given", "field", "said"),
    [
        ({"password": MARK}, "password", "there is no option password"),
        ({"stroe": MARK}, "stroe", "there is no option stroe"),
        ({"store": f"tcp://u:{MARK}@h:1"}, "store", "has a user or a password"),
        ({"archive": f"s3://{MARK}@bucket/x"}, "archive", "has a user or a password"),
        ({"archiveEndpoint": f"https://{MARK}@h"}, "archive_endpoint", "has a user or a password"),
        ({"format": MARK}, "format", "Input should be"),
        ({"archiveRun": MARK}, "archive_run", "integer"),
        ({"delimiter": ";;"}, "delimiter", "at most 1 character"),
        ({"secret": f"../{MARK}"}, "secret", "String should match"),
        ({"stream": "clicks"}, "stream", "'clicks' is no stream"),
        ({"stream": None}, "stream", "no stream is named"),
        ({"store": None, "stream": None}, "store", "neither a store nor an archive"),
        ({"maxEventsPerTrigger": 0}, "max_events_per_trigger", "greater than 0"),
    ],
)
def test_a_wrong_option_is_named_and_its_value_is_not(
    given: dict[str, Any], field: str, said: str
) -> None:
    """Spark logs messages, so no message shows a password that is in the wrong option."""
    options = {key: one for key, one in {**STORE, **given}.items() if one is not None}
    with pytest.raises(InvalidSpec, match=said) as caught:
        assert TableOptions.read(options).place
    assert caught.value.field == field
    assert MARK not in f"{caught.value} {caught.value!r} {caught.value.remedy}"


def test_a_login_in_an_option_is_answered_with_what_to_do() -> None:
    """The remedy names the variable of the credentials' folder."""
    with pytest.raises(InvalidSpec) as caught:
        TableOptions.read({"userName": "me"})
    assert "SLUICE_CREDENTIALS_DIR" in caught.value.remedy


def test_the_decoder_has_the_format_of_the_options() -> None:
    """Without a format, events are decoded as bytes."""
    decoder = TableOptions.read(STORE).decoder(None)
    assert decoder.columns.schema.names[-1] == "event"
    assert TableOptions.read({**STORE, "format": "Csv"}).format is EventFormat.CSV
