"""How much of what a peer says is taken in: pages, names, segments, epochs, tokens.

A store is somebody's server, and the operator that asks it is everybody's. All bounds lie far above
what a real store has; whoever exceeds one gets an error in place of our memory and time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sluice.errors import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_MESSAGE: Final = 1 << 20
"""Bytes in one answer of the controller: some eight thousand segments. The library takes one in as
a whole before anybody sees it."""

MOST_PAGES: Final = 100_000
"""Pages of one listing."""

MOST_NAMES: Final = 250_000
"""Names in one listing: 25 times as many streams as a copy of a scope can have."""

MOST_NAME: Final = 1024
"""Characters of a name; streams have at most 255, and the store's own put something before."""

MOST_SEGMENTS: Final = 25_000
"""Segments of one epoch: more than are active in one container of a store."""

MOST_EPOCHS: Final = 100_000
"""Epochs of one stream that are looked at."""

MOST_MADE: Final = 250_000
"""Segments of all these epochs."""

MOST_TOKEN: Final = 16 << 10
"""Characters of a delegation token."""

MOST_HOST: Final = 255
"""Characters of a segment store's host."""

MOST_STATE: Final = 64 << 20
"""Bytes of what a reader group remembers."""


class Listing:
    """The names of one listing, page by page, and where the next one begins.

    Args:
        doing: what is listed, for errors.

    Attributes:
        names: those told so far.
        token: what the next page is asked for with.
    """

    def __init__(self, doing: str) -> None:
        self.names: set[str] = set()
        self.token = ""
        self._doing = doing
        self._tokens = {hash("")}

    def add(self, names: Iterable[str], token: str) -> bool:
        """Take in a page; False for an empty one, which is the last.

        Raises:
            ProtocolError: it is one page or name too many, or one that was told before.
        """
        page = list(names)
        if not page:
            return False
        if any(len(name) > MOST_NAME for name in page):
            raise self._refused(f"a name of more than {MOST_NAME} characters")
        self.names.update(page)
        if len(self.names) > MOST_NAMES:
            raise self._refused(f"more than {MOST_NAMES} names")
        if hash(token) in self._tokens:
            raise self._refused("a page that it had told before, so its pages have no end")
        if len(self._tokens) >= MOST_PAGES:
            raise self._refused(f"more than {MOST_PAGES} pages")
        self._tokens.add(hash(token))
        self.token = token
        return True

    def _refused(self, what: str) -> ProtocolError:
        return ProtocolError(f"cannot {self._doing}: the controller told {what}")
