"""Bounds on a server's answers: pages, names, segments, epochs, tokens.

One tenant's store is asked by an operator that serves all tenants. All bounds lie far above the
sizes of real stores. An answer that exceeds one is an error, and takes no more memory or time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sluice.errors import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_MESSAGE: Final = 1 << 20
"""Bytes in one answer of the controller: some eight thousand segments. gRPC reads a whole answer
into memory before it hands it on."""

MOST_PAGES: Final = 100_000
"""Pages of one listing."""

MOST_NAMES: Final = 250_000
"""Names in one listing: 25 times as many streams as a copy of a scope can have."""

MOST_NAME: Final = 1024
"""Characters of a name; streams have at most 255, and internal streams add a prefix."""

MOST_SEGMENTS: Final = 25_000
"""Segments of one epoch: more than can be active in one container of a store."""

MOST_EPOCHS: Final = 100_000
"""Epochs of one stream that are looked at."""

MOST_MADE: Final = 250_000
"""Segments of all epochs of one stream that are looked at."""

MOST_TOKEN: Final = 16 << 10
"""Characters of a delegation token."""

MOST_HOST: Final = 255
"""Characters of a segment store's host."""

MOST_STATE: Final = 64 << 20
"""Bytes of a reader group's state."""


class Listing:
    """The names of one listing, collected page by page.

    Args:
        doing: the listing in words, for errors.

    Attributes:
        names: the names so far.
        token: the continuation token with which to ask for the next page.
    """

    def __init__(self, doing: str) -> None:
        self.names: set[str] = set()
        self.token = ""
        self._doing = doing
        self._tokens = {hash("")}

    def add(self, names: Iterable[str], token: str) -> bool:
        """Add a page; False if it is empty, and so the last one.

        Raises:
            ProtocolError: there are too many pages or names, a name is too long, or a token comes
                again, so the pages would have no end.
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
