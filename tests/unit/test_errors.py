import inspect
import pickle
import re
from collections.abc import Iterator
from typing import Any

import pytest

from sluice import errors
from sluice.errors import (
    Category,
    InvalidSpec,
    SegmentTruncated,
    SluiceError,
    StoreMoving,
    StoreTimeout,
    StoreUnavailable,
)


def tree(root: type[SluiceError] = SluiceError) -> Iterator[type[SluiceError]]:
    """Yield a class and all its subclasses in the package."""
    yield root
    for kind in root.__subclasses__():
        if kind.__module__.startswith(errors.__name__):
            yield from tree(kind)


CLASSES = list(tree())


def drawn() -> list[str]:
    """Return the names in the tree of the package's docstring, from top to bottom."""
    names = ["SluiceError"]
    for line in str(errors.__doc__).partition("    SluiceError\n")[2].splitlines():
        found = re.match(r"[ │├└─]*((?:[A-Z]\w+(?:, )?)+)", line)
        assert found is not None, line
        names += found[1].rstrip(", ").split(", ")
    return names


def test_the_drawn_tree_names_every_class() -> None:
    """The tree in the package's docstring has every class, and no other name."""
    assert sorted(drawn()) == sorted(kind.__name__ for kind in CLASSES)


def test_the_package_gives_every_class_in_the_order_of_the_tree() -> None:
    """The package exports the classes in the order of the tree, as the page of conditions does."""
    assert errors.__all__ == ["Category", *drawn(), "EXIT_CODES", "UNDECIDED"]


def test_a_class_is_in_the_module_of_its_category() -> None:
    """The category decides the module of a class. Only the root is elsewhere."""
    found = {kind.__name__: kind.__module__.rpartition(".")[2] for kind in CLASSES}
    wanted = {kind.__name__: kind.category.lower() for kind in CLASSES}
    assert found == wanted | {"SluiceError": "base"}


def test_the_drawn_tree_marks_what_is_retryable() -> None:
    """The drawing marks a class as retryable if and only if it is."""
    marked = {
        name
        for line in str(errors.__doc__).splitlines()
        if line.endswith("(retryable)")
        for name in re.findall(r"[A-Z]\w+", line)[:1]
    }
    assert marked == {kind.__name__ for kind in CLASSES if kind.retryable}


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_every_class_says_what_is_wrong_and_what_to_do(kind: type[SluiceError]) -> None:
    """Each class has a docstring and a remedy that are sentences, a category and a reason."""
    assert kind.__doc__
    assert kind.__doc__.splitlines()[0].endswith(".")
    error = kind("it broke")
    assert error.remedy.endswith(".")
    assert error.reason == kind.__name__
    assert error.category in Category
    assert str(error) == error.message == "it broke"


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_every_class_crosses_a_process_boundary_whole(kind: type[SluiceError]) -> None:
    """Pickled and read back, an error keeps its class, message, attributes and notes."""
    given: dict[str, Any] = {
        "field": "spec.source",
        "remedy": "Do this.",
        "segment": "s/t/0",
        "start_offset": 12,
        "host": "h:1",
    }
    taken = inspect.signature(kind).parameters
    error = kind("it broke", **{key: value for key, value in given.items() if key in taken})
    error.add_note("and more")
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert type(again) is kind
    assert again.args == ("it broke",)
    assert vars(again) == vars(error)
    assert (str(again), again.__notes__) == (str(error), ["and more"])


def test_attributes_of_segment_errors_are_kept() -> None:
    """A caller needs them to go on: the first offset left, or the other server."""
    truncated = SegmentTruncated("gone", segment="s/t/0", start_offset=12)
    assert (truncated.segment, truncated.start_offset) == ("s/t/0", 12)
    moved = StoreMoving("moved", segment="s/t/0", host="h:1")
    assert (moved.segment, moved.host, moved.retryable) == ("s/t/0", "h:1", True)


def test_a_field_leads_the_text() -> None:
    """The text of an error about a field begins with the field's path."""
    assert str(InvalidSpec("is wrong", field="spec.a")) == "spec.a: is wrong"


def test_a_remedy_of_its_own_goes_before_the_class() -> None:
    """An error may have a better remedy than its class."""
    assert StoreUnavailable("x", remedy="Start it.").remedy == "Start it."
    assert StoreTimeout("x").remedy == StoreUnavailable("x").remedy
