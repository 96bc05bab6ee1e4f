from contextlib import nullcontext, suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.core.scope.request import OnExists, Rename, ScopeRequest, Selector
from sluice.core.scope.scope import MOST_NAMES, LeftOut, Why
from sluice.core.scope.selection import (
    Choice,
    Chosen,
    choose,
    joined,
    left_out,
    origins_of,
    renamed,
    selected,
    tags_of,
)
from sluice.errors import InvalidSpec

NAMES = ("a", "a-1", "b", "b.2", "_RGg", "_sluice-1234", "_sluice-scope")

names = st.text(alphabet="ab_-", min_size=1, max_size=4)
selectors = st.builds(
    Selector, type=st.sampled_from(["Exact", "Prefix", "Tag"]), value=st.text("ab_-", min_size=1)
)


def request(
    *,
    include: tuple[Selector, ...] = (),
    exclude: tuple[Selector, ...] = (),
    rename: tuple[Rename, ...] = (),
    ephemeral: bool = False,
    target: str = "out",
    on_exists: OnExists = "Fail",
) -> ScopeRequest:
    """Return a request to copy streams of the scope `in`."""
    return ScopeRequest(
        scope_id="5c" * 16,
        source="in",
        target=target,
        include=include,
        exclude=exclude,
        rename=rename,
        ephemeral=ephemeral,
        on_exists=on_exists,
    )


def exact(value: str) -> Selector:
    """Return the selector of the stream with this name."""
    return Selector(type="Exact", value=value)


def prefix(value: str) -> Selector:
    """Return the selector of streams whose names begin with this text."""
    return Selector(type="Prefix", value=value)


def tag(value: str) -> Selector:
    """Return the selector of streams with this tag."""
    return Selector(type="Tag", value=value)


def rename(begin: str, by: str) -> Rename:
    """Return a rename of streams whose names begin with this text."""
    return Rename(from_prefix=begin, to_prefix=by)


renames = st.builds(rename, st.text("ab-", max_size=2), st.text("ab-", max_size=2))


def chosen_of(wanted: ScopeRequest, *streams: str, one_store: bool = False) -> Choice:
    """Return the choice among these streams, which have no tags and no reason to be left out."""
    found = streams or NAMES
    return choose(found, tagged={}, left={}, request=wanted, one_store=one_store)


def reasons(choice: Choice) -> dict[str, Why]:
    """Return the reason for each stream that is left out."""
    return {name: one.why for one in choice.left_out for name in one.streams}


def test_all_streams_that_users_made_are_chosen() -> None:
    """Without selectors all streams but internal ones are copied, under their own names."""
    choice = chosen_of(request())
    assert choice.chosen == tuple(Chosen(name, name) for name in ("a", "a-1", "b", "b.2"))
    assert choice.left_out == (
        LeftOut(why=Why.INTERNAL, count=3, streams=("_RGg", "_sluice-1234", "_sluice-scope")),
    )


@pytest.mark.parametrize(
    ("include", "expected"),
    [
        ((exact("a"),), {"a"}),
        ((prefix("a"),), {"a", "a-1"}),
        ((tag("red"),), {"b"}),
        ((exact("a"), tag("red")), {"a", "b"}),
        ((exact("none"),), set()),
        ((exact("_RGg"),), {"_RGg"}),
        ((prefix("_"),), {"_RGg"}),
        ((prefix("_s"),), set()),
        ((exact("_sluice-scope"),), set()),
    ],
    ids=lambda value: "+".join(s.value for s in value) if isinstance(value, tuple) else None,
)
def test_what_is_included_is_chosen(include: tuple[Selector, ...], expected: set[str]) -> None:
    """Selectors go by name, prefix or tag.

    An internal stream needs a selector that begins with `_`, and Sluice's markers are never chosen.
    """
    tagged = {"red": {"b", "_RGg"}}
    choice = choose(
        NAMES, tagged=tagged, left={}, request=request(include=include), one_store=False
    )
    assert {one.stream for one in choice.chosen} == expected


def test_what_is_excluded_is_not_selected() -> None:
    """`exclude` overrides `include`, also for internal streams that are named."""
    wanted = request(include=(prefix("a"), prefix("_")), exclude=(exact("a"), prefix("_RG")))
    choice = chosen_of(wanted)
    assert [one.stream for one in choice.chosen] == ["a-1"]
    assert reasons(choice) == {
        "a": Why.NOT_SELECTED,
        "b": Why.NOT_SELECTED,
        "b.2": Why.NOT_SELECTED,
        "_RGg": Why.NOT_SELECTED,
        "_sluice-1234": Why.INTERNAL,
        "_sluice-scope": Why.INTERNAL,
    }


def test_streams_are_left_out_for_what_they_are_only_if_they_are_selected() -> None:
    """A stream that is not selected has the reason NotSelected, whatever else it is."""
    left = {"a": Why.EPHEMERAL, "b": Why.EPHEMERAL}
    wanted = request(include=(prefix("a"),))
    choice = choose(("a", "a-1", "b"), tagged={}, left=left, request=wanted, one_store=False)
    assert [one.stream for one in choice.chosen] == ["a-1"]
    assert reasons(choice) == {"a": Why.EPHEMERAL, "b": Why.NOT_SELECTED}


@given(
    st.sets(names),
    st.dictionaries(names, st.sampled_from([Why.EPHEMERAL, Why.OWN])),
    st.lists(selectors, max_size=3),
    st.lists(selectors, max_size=3),
    st.lists(renames, max_size=3),
)
def test_each_stream_is_chosen_or_left_out_for_one_reason(
    streams: set[str],
    left: dict[str, Why],
    include: list[Selector],
    exclude: list[Selector],
    renaming: list[Rename],
) -> None:
    """Targets differ, and an excluded stream is never chosen."""
    wanted = request(include=tuple(include), exclude=tuple(exclude), rename=tuple(renaming))
    tagged = {value: {name for name in streams if name > value} for value in tags_of(wanted)}
    with suppress(InvalidSpec):
        choice = choose(streams, tagged=tagged, left=left, request=wanted, one_store=False)
        check_parts(choice, streams)
        chosen = {one.stream for one in choice.chosen}
        assert not chosen & left.keys()
        assert chosen <= set(selected(streams, tagged=tagged, request=wanted))
        for name in chosen:
            assert not any(one.type == "Exact" and one.value == name for one in exclude)
            assert not any(one.type == "Prefix" and name.startswith(one.value) for one in exclude)


def check_parts(choice: Choice, streams: set[str]) -> None:
    """Assert that each stream is chosen, for a target of its own, or left out for one reason."""
    chosen = [one.stream for one in choice.chosen]
    told = [name for one in choice.left_out for name in one.streams]
    assert sorted(chosen + told) == sorted(streams)
    assert sum(one.count for one in choice.left_out) == len(told)
    assert len({one.target for one in choice.chosen}) == len(chosen)


@given(st.sets(st.text("ab-", min_size=1, max_size=4)), st.lists(renames, max_size=3))
def test_what_can_be_copied_has_targets_of_its_own_and_else_nothing_is(
    streams: set[str], renaming: list[Rename]
) -> None:
    """Exactly the choices with a shared target or an impossible name raise InvalidSpec."""
    targets = [renamed(name, renaming) for name in sorted(streams)]
    wanted = request(rename=tuple(renaming))
    possible = len(set(targets)) == len(targets) and "" not in targets
    with nullcontext() if possible else pytest.raises(InvalidSpec) as refused:
        choice = choose(streams, tagged={}, left={}, request=wanted, one_store=False)
        assert [one.target for one in choice.chosen] == targets
    assert refused is None or refused.value.field == "spec.rename"


def test_a_collision_names_both_streams() -> None:
    """The error also names the target that they would share."""
    with pytest.raises(InvalidSpec, match=r"a-x and b-x .* to x") as caught:
        chosen_of(request(rename=(rename("a-", ""), rename("b-", ""))), "a-x", "b-x")
    assert caught.value.field == "spec.rename"


@pytest.mark.parametrize(
    ("begin", "by"),
    [("a", ""), ("a", "_"), ("a", "x" * 250), ("a", "a/"), ("a", "_sluice-"), ("a", "old_a")],
    ids=["empty", "internal", "too long", "no letter", "marker", "underscore"],
)
def test_names_that_no_stream_can_have_are_refused(begin: str, by: str) -> None:
    """The error at spec.rename names the stream, before any target is made."""
    with pytest.raises(InvalidSpec, match="the stream a would be renamed") as caught:
        chosen_of(request(rename=(rename(begin, by),)), "a")
    assert caught.value.field == "spec.rename"


def test_a_name_may_have_its_full_length() -> None:
    """A target's name of 249 characters is accepted."""
    choice = chosen_of(request(rename=(rename("a", "x" * 249),)), "a")
    assert choice.chosen == (Chosen("a", "x" * 249),)


def test_an_internal_stream_keeps_its_name_or_gets_that_of_a_users_stream() -> None:
    """Another internal name is refused: the store would take the stream for its own."""
    wanted = request(include=(prefix("_RG"),))
    assert chosen_of(wanted).chosen == (Chosen("_RGg", "_RGg"),)
    users = wanted.model_copy(update={"rename": (rename("_RG", "group-"),)})
    assert chosen_of(users).chosen == (Chosen("_RGg", "group-g"),)
    other = wanted.model_copy(update={"rename": (rename("_RG", "_RGx-"),)})
    with pytest.raises(InvalidSpec, match="_RGg would be renamed to '_RGx-g'"):
        chosen_of(other)


def test_the_first_rename_that_fits_holds() -> None:
    """Later renames apply only to names that the first one does not fit."""
    renaming = (rename("a-", "x-"), rename("a", "y"), rename("", "z-"))
    assert [renamed(name, renaming) for name in ("a-1", "a", "b")] == ["x-1", "y", "z-b"]


def test_a_stream_is_not_copied_to_itself() -> None:
    """If source and target are one scope of one store, every stream needs a new name."""
    wanted = request(rename=(rename("a", "x"),), target="in")
    assert chosen_of(wanted, "a").chosen == (Chosen("a", "x"),)
    assert chosen_of(wanted, "a", "b").chosen
    with pytest.raises(InvalidSpec, match="in/b would be copied to itself") as caught:
        chosen_of(wanted, "a", "b", one_store=True)
    assert caught.value.field == "spec.target"


@given(names, st.lists(renames, max_size=3))
def test_what_a_target_may_come_from_is_told(name: str, renaming: list[Rename]) -> None:
    """`origins_of` lists the stream itself, and only streams with this target."""
    target = renamed(name, renaming)
    origins = origins_of(target, renaming)
    assert name in origins
    assert {renamed(origin, renaming) for origin in origins} == {target}
    assert len(set(origins)) == len(origins)


def test_few_are_named_and_all_are_counted() -> None:
    """The names per reason are limited and the counts are not, also after groupings are joined."""
    many = {f"s{number:03}": Why.EXISTS for number in range(MOST_NAMES + 7)}
    (first,) = left_out(many)
    assert (first.count, len(first.streams)) == (MOST_NAMES + 7, MOST_NAMES)
    other = left_out({"a": Why.EXISTS, "b": Why.INTERNAL})
    internal, exists = joined((first,), other)
    assert internal == LeftOut(why=Why.INTERNAL, count=1, streams=("b",))
    assert (exists.count, len(exists.streams)) == (MOST_NAMES + 8, MOST_NAMES)
    assert exists.streams[:2] == ("a", "s000")


def test_tags_are_asked_for_once() -> None:
    """Each tag is listed once, whether selectors include or exclude it."""
    wanted = request(include=(tag("red"), exact("a")), exclude=(tag("blue"), tag("red")))
    assert tags_of(wanted) == ("blue", "red")
