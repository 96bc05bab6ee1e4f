"""Cuts: positions in a stream, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sluice.core.values.model import StreamName


class Cuts(Protocol):
    """Positions as text, as the clients of a store write them."""

    def read_cut(self, text: str) -> tuple[StreamName, dict[int, int]]:
        """The stream and the offsets by segment id of a cut as the store's clients write it.

        Raises:
            InvalidSpec: it is none.
        """
        ...

    def write_cut(self, stream: StreamName, cut: Mapping[int, int]) -> str:
        """A cut as the store's clients read it."""
        ...
