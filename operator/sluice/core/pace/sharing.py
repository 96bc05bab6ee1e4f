"""Share a bounded number of places fairly between groups."""

from __future__ import annotations

from itertools import chain, islice, zip_longest
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

T = TypeVar("T")


def dealt(groups: Iterable[Sequence[T]], most: int) -> list[T]:
    """Return at most `most` items: the first of each group, then the second of each, and so on.

    So a group with many items takes no place that a small group needs.
    """
    rounds = zip_longest(*([(item,) for item in group] for group in groups), fillvalue=())
    return list(islice(chain.from_iterable(chain.from_iterable(rounds)), most))
