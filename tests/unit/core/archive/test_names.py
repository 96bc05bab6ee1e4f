import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.core.archive.names import (
    DataName,
    EventName,
    Format,
    RunName,
    head_name,
    head_number,
    read_data,
    read_event,
    read_run,
)
from sluice.core.values.archive_layout import DATA, EVENTS, below, checked_path, stream_at
from sluice.errors import InvalidSpec

epochs = st.integers(0, (1 << 32) - 1)
numbers = st.integers(0, (1 << 63) - 1)
hashes = st.binary().map(lambda data: hashlib.sha256(data).hexdigest())
data_names = st.builds(DataName, epochs, numbers, numbers, numbers, hashes, st.sampled_from(Format))
event_names = st.builds(EventName, epochs, numbers, numbers, st.integers(0, (1 << 31) - 1))


@given(st.lists(data_names))
def test_data_names_sort_as_the_stream(names: list[DataName]) -> None:
    """The order of the names as text is the order of epochs, segments and offsets."""
    places = sorted(name[:4] for name in names)
    assert [_place(text) for text in sorted(map(str, names))] == places


def _place(text: str) -> tuple[int, int, int, int]:
    name = read_data(text)
    assert name is not None
    return name[:4]


@given(st.lists(event_names))
def test_event_names_sort_as_the_stream(names: list[EventName]) -> None:
    """The order of the names as text is the order of epochs, segments and offsets."""
    assert [read_event(text) for text in sorted(map(str, names))] == sorted(names)


@given(st.lists(numbers))
def test_heads_sort_by_number(several: list[int]) -> None:
    """The last head's name in the order of text is that of the latest head."""
    assert [head_number(text) for text in sorted(map(head_name, several))] == sorted(several)


@given(data_names, event_names, numbers, hashes)
def test_names_are_read_as_they_were_written(
    data: DataName, event: EventName, number: int, sha256: str
) -> None:
    """A name gives its parts back, and readers of other kinds of names refuse it."""
    assert read_data(str(data)) == data
    assert read_event(str(event)) == event
    run = RunName(number, sha256)
    assert read_run(str(run)) == run
    assert (read_data(str(event)), read_event(str(data)), read_run(str(data))) == (None, None, None)
    assert head_number(str(run)) is None
    assert str(data).startswith(f"{DATA}{data.epoch:08x}/{data.segment:016x}/")
    assert str(event).startswith(f"{EVENTS}{event.epoch:08x}/{event.segment:016x}/")


@pytest.mark.parametrize(
    "text", ["", "data/", "heads/1", "heads/000000000000000g", "runs/x.json.zst", ".partial/ab"]
)
def test_other_names_are_none(text: str) -> None:
    """Each reader of names returns None for a text that no object can have as its name."""
    assert {read_data(text), read_event(text), read_run(text), head_number(text)} == {None}


@pytest.mark.parametrize("path", ["a", "team-a/orders", "x=1/y@2/z+3", "a" * 512])
def test_paths_that_every_store_writes_alike_are_taken(path: str) -> None:
    """A path has letters, digits and a few signs between slashes, and up to 512 characters."""
    assert checked_path(path, field="path") == path


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/a",
        "a/",
        "a//b",
        "a/../b",
        ".",
        "ü",
        "a b",
        "a#b",
        "a%20",
        "a/heads",
        "data/a",
        "a/.partial/b",
        "a" * 513,
    ],
)
def test_other_paths_are_refused(path: str) -> None:
    """InvalidSpec names the field.

    Such a path lies inside an archive, or stores differ in how they write it.
    """
    with pytest.raises(InvalidSpec) as caught:
        checked_path(path, field="spec.destination.path")
    assert caught.value.field == "spec.destination.path"


@pytest.mark.parametrize(
    ("stream", "path"),
    [
        ("orders", "in/orders"),
        ("events", "in/events="),
        ("..", "in/..="),
        (".partial", "in/.partial="),
        ("events-2", "in/events-2"),
    ],
)
def test_every_stream_has_a_path_in_a_folder(stream: str, path: str) -> None:
    """A stream named like a part of an archive gets the suffix `=`.

    The path gives the stream back.
    """
    assert below("in", stream) == path
    assert below("", stream) == path.removeprefix("in/")
    assert checked_path(path, field="f") == path
    assert stream_at(path) == stream


def test_a_path_that_somebody_chose_stays_as_it_is() -> None:
    """A final `=` belongs to the name, unless the rest is the name of a part of an archive."""
    assert stream_at("in/orders=") == "orders="
