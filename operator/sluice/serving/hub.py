"""Keep the last rows and the state of a query, and hand them to all its viewers.

What viewers get is encoded once. A viewer has only a number: the last part that it got. So slow
viewers cost no memory: one that is too far behind gets all that is kept anew.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sluice.core.query.recent import Rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MOST_ROWS: Final = 5000
"""The most rows that are kept."""

MOST_BYTES: Final = 4 << 20
"""The most bytes of rows that are kept. The last part is kept in any case."""

SMALL: Final = 64 << 10
"""Bytes up to which an answer is one piece."""

_Json = dict[str, Any]


class _RowPart(NamedTuple):
    """Rows that came together.

    Attributes:
        number: counts the parts, from 1.
        text: the rows as JSON, with commas between them.
        rows: their number.
        skipped: the number of rows that are not shown.
    """

    number: int
    text: bytes
    rows: int
    skipped: int


class Received(NamedTuple):
    """What a viewer has got.

    Attributes:
        rows: the number of the last part of rows; 0 before the first.
        era: the era of the rows.
        state: the number of the last state.
        problem: the number of the last problem.
    """

    rows: int = 0
    era: int = 0
    state: int = 0
    problem: int = 0


class Hub:
    """The last rows and the state of one query. Used in one event loop only."""

    def __init__(self) -> None:
        self._parts: deque[_RowPart] = deque()
        self._rows = self._bytes = self._number = 0
        self._era = 0
        self._state: tuple[int, bytes] = (0, b"")
        self._told: _Json | None = None
        self._answers: dict[Received, list[bytes]] = {}
        self._problem: tuple[int, bytes] = (0, b"")
        self._news = asyncio.Event()

    def begin(self, rows: Rows) -> None:
        """Take the last rows of a stream, in the place of all that are kept."""
        self._parts.clear()
        self._rows = self._bytes = 0
        self._era += 1
        self._keep(rows)
        self._tell()

    def clear(self) -> None:
        """Forget all rows, which may not be shown any more."""
        if self._rows:
            self.begin(Rows())

    def add(self, rows: Rows) -> None:
        """Take rows that came."""
        if rows.texts or rows.skipped:
            self._keep(rows)
            self._tell()

    def _keep(self, rows: Rows) -> None:
        texts = rows.texts[-MOST_ROWS:]
        self._number += 1
        part = _RowPart(
            self._number,
            b",".join(texts),
            len(texts),
            rows.skipped + len(rows.texts) - len(texts),
        )
        self._parts.append(part)
        self._rows += part.rows
        self._bytes += len(part.text)
        while len(self._parts) > 1 and (self._rows > MOST_ROWS or self._bytes > MOST_BYTES):
            gone = self._parts.popleft()
            self._rows -= gone.rows
            self._bytes -= len(gone.text)

    def set_state(self, state: _Json) -> None:
        """Take the state of the query. One that differs by its time `now` only is no news."""
        told = {key: value for key, value in state.items() if key != "now"}
        if told != self._told:
            self._told = told
            self._state = self._state[0] + 1, encoded("state", state)
            self._tell()

    def set_problem(self, problem: _Json) -> None:
        """Take what keeps rows from being read; an empty object once nothing does."""
        text = encoded("problem", problem)
        if self._problem != (0, b"") or problem:
            if text == self._problem[1]:
                return
            self._problem = self._problem[0] + 1, text
            self._tell()

    def _tell(self) -> None:
        self._answers.clear()
        self._news.set()
        self._news = asyncio.Event()

    async def wait(self, seconds: float) -> None:
        """Wait until something is new, for at most so many seconds."""
        try:
            await asyncio.wait_for(self._news.wait(), seconds)
        except TimeoutError:
            return

    def since(self, seen: Received) -> tuple[list[bytes], Received]:
        """Return what a viewer has not got, and what it has got then.

        Returns:
            Server-sent events in pieces, which are not copied for each viewer.
        """
        now = Received(self._number, self._era, self._state[0], self._problem[0])
        if seen not in self._answers:
            # Most viewers have got the same, and get the same in one piece.
            told = self._since(seen)
            small = sum(map(len, told)) <= SMALL
            self._answers[seen] = [b"".join(told)] if small and told else told
        return self._answers[seen], now

    def _since(self, seen: Received) -> list[bytes]:
        told: list[bytes] = []
        if self._state[0] != seen.state:
            told.append(self._state[1])
        if self._problem[0] != seen.problem:
            told.append(self._problem[1])
        return told + self._rows_since(seen)

    def _rows_since(self, seen: Received) -> list[bytes]:
        if not self._parts or seen.rows == self._number:
            return []
        reset = seen.era != self._era or seen.rows < self._parts[0].number - 1
        new = [part for part in self._parts if reset or part.number > seen.rows]
        return [*_rows_event(new, reset=reset)]


def _rows_event(parts: Sequence[_RowPart], *, reset: bool) -> Iterator[bytes]:
    skipped = sum(part.skipped for part in parts)
    head = json.dumps({"reset": reset, "skipped": skipped}).encode()
    yield b"event: rows\ndata: " + head[:-1] + b', "rows": ['
    for number, part in enumerate(part for part in parts if part.rows):
        if number:
            yield b","
        yield part.text
    yield b"]}\n\n"


def encoded(event: str, data: _Json) -> bytes:
    """Return a server-sent event."""
    return f"event: {event}\ndata: {json.dumps(data)}\n\n".encode()
