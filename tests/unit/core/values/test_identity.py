import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.core.values import identity

SPEC = {"source": {"scope": "in", "stream": "s"}, "target": {"scope": "out", "stream": "t"}}
COPY = "ab" * 16


def copy_id(**changes: object) -> str:
    """Return a copy's id, with some parts changed."""
    parts: dict[str, Any] = {
        "cluster": "c",
        "namespace": "n",
        "name": "a",
        "identity": SPEC,
    } | changes
    return identity.copy_id(**parts)


def test_a_copy_id_never_changes() -> None:
    """The id is the same in every version, so that an upgrade finds what it left."""
    assert copy_id() == "615c8d0f05e483c1c4cc355bcd9501ff"


@given(st.permutations(list(SPEC)), st.permutations(["scope", "stream"]))
def test_a_copy_id_does_not_depend_on_the_order_of_keys(outer: list[str], inner: list[str]) -> None:
    """Equal content gives equal ids, whatever the order of the keys."""
    shuffled = {side: {key: SPEC[side][key] for key in inner} for side in outer}
    assert copy_id(identity=shuffled) == copy_id()


@pytest.mark.parametrize(
    "change",
    [
        {"cluster": "d"},
        {"namespace": "m"},
        {"name": "b"},
        {"identity": {**SPEC, "target": {"scope": "out", "stream": "u"}}},
        {"identity": {"source": SPEC["target"], "target": SPEC["source"]}},
        {"namespace": "na", "name": ""},
    ],
    ids=str,
)
def test_a_copy_id_differs_by_every_part(change: dict[str, object]) -> None:
    """Another cluster, namespace, name, source or target makes another copy."""
    assert copy_id(**change) != copy_id()


def test_keys_are_32_hexadecimal_digits_and_never_meet() -> None:
    """Each part of each segment, and the journal, has its own key in the store's form."""
    keys = [
        identity.staging_key(copy, segment, part)
        for copy in (COPY, "cd" * 16)
        for segment in range(12)
        for part in range(12)
    ]
    keys += [identity.journal_key(COPY), identity.journal_key("cd" * 16)]
    assert len(set(keys)) == 290
    assert all(re.fullmatch("[0-9a-f]{32}", key) for key in keys)


def test_writers_and_attributes_never_meet() -> None:
    """The writers of parts and the attributes of copies have different ids."""
    ids = [identity.writer_id(COPY, identity.staging_key(COPY, 0, part)) for part in range(3)]
    ids += [
        identity.publish_attribute(COPY),
        identity.stitch_attribute(COPY),
        identity.verified_attribute(COPY),
        identity.publish_attribute("cd" * 16),
    ]
    assert len(set(ids)) == 7


def test_a_stream_is_ours_by_the_whole_copy_tag() -> None:
    """Only the tag with this copy's id counts. The tag that Sluice made a stream is not enough."""
    assert identity.owner_tags(COPY) == ("sluice.dev/managed", "sluice.dev/copy=" + COPY)
    assert identity.is_ours(identity.owner_tags(COPY), COPY)
    assert not identity.is_ours(("sluice.dev/managed",), COPY)
    assert not identity.is_ours(identity.owner_tags("cd" * 16), COPY)
    assert not identity.is_ours(("sluice.dev/copy=" + COPY + "0",), COPY)


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ((), None),
        (identity.owner_tags(COPY), None),
        ((*identity.owner_tags(COPY), "sluice.dev/complete=12"), "12"),
        ((*identity.owner_tags("cd" * 16), "sluice.dev/complete=12"), None),
        (("sluice.dev/complete=12",), None),
    ],
    ids=["foreign", "begun", "complete", "another copy's", "no copy's"],
)
def test_a_stream_is_complete_by_its_own_copy_only(
    tags: tuple[str, ...], expected: str | None
) -> None:
    """The digest on a stream counts only beside the tag of this copy."""
    assert identity.completed(tags, COPY) == expected


def test_a_reader_groups_identity_is_new_each_time_and_tells_who_made_it() -> None:
    """Identities with the same copy and group name have the same maker, whatever the number."""
    copy, other = "ab" * 16, "cd" * 16
    one = identity.group_identity(copy, "s", "g", 1)
    assert one != identity.group_identity(copy, "s", "g", 2)
    assert identity.same_maker(one, identity.group_identity(copy, "s", "g", 2))
    assert not identity.same_maker(one, identity.group_identity(copy, "s", "h", 1))
    assert not identity.same_maker(one, identity.group_identity(other, "s", "g", 1))


def test_a_streams_copy_id_never_changes() -> None:
    """The id follows from the scope copy's id and the stream's name alone."""
    assert identity.stream_copy_id(COPY, "s") == "67927783bbf1a886ec0cd705c90e5c51"
    ids = {identity.stream_copy_id(copy, name) for copy in (COPY, "cd" * 16) for name in ("s", "t")}
    assert len(ids) == 4
