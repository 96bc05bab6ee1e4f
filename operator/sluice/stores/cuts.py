"""The part of a store that reads and writes cuts, positions in a stream, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sluice.core.values.model import StreamName


class Cuts(Protocol):
    """Cuts as text, in the form that the store's own clients use."""

    def read_cut(self, text: str) -> tuple[StreamName, dict[int, int]]:
        """Return the stream of a cut and its offsets in bytes by segment id.

        Args:
            text: the cut as the store's clients write it.

        Raises:
            InvalidSpec: the text is not a cut.
        """
        ...

    def write_cut(self, stream: StreamName, cut: Mapping[int, int]) -> str:
        """Return a cut as text that the store's clients can read."""
        ...
