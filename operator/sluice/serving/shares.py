"""Bound what viewers take together, and leave some of it for those of other namespaces."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sluice.errors import StoreBusy

if TYPE_CHECKING:
    from collections.abc import Iterator


class Shares:
    """A number of places, of which one namespace gets a part.

    Args:
        what: the places, for people.
        most: the number of places.
        alone: whether there is only one namespace, which then gets all of them. Otherwise one gets
            half of them at most.
    """

    def __init__(self, what: str, most: int, *, alone: bool) -> None:
        self._what = what
        self._most = most
        self._of_each = most if alone else most // 2
        self._taken: Counter[str] = Counter()

    def take(self, namespace: str) -> None:
        """Take a place.

        Raises:
            StoreBusy: there is none for this namespace.
        """
        if self._taken[namespace] >= self._of_each or self._taken.total() >= self._most:
            raise StoreBusy(
                f"there are too many {self._what}",
                remedy="Close pages that you do not look at, or try again later.",
            )
        self._taken[namespace] += 1

    def give_back(self, namespace: str) -> None:
        """Give a place back."""
        self._taken[namespace] -= 1
        if not self._taken[namespace]:
            del self._taken[namespace]

    @contextmanager
    def taken(self, namespace: str) -> Iterator[None]:
        """Have a place for a block. Raises as `take`."""
        self.take(namespace)
        try:
            yield
        finally:
            self.give_back(namespace)
