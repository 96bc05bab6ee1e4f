"""The hub, which gives all viewers the same rows at their own speed and in bounded memory."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sluice.core.query.recent import Rows
from sluice.serving.hub import MOST_BYTES, MOST_ROWS, Hub, Received


def rows(*numbers: int) -> Rows:
    """Return rows with these numbers."""
    return Rows(tuple(b'{"n":%d}' % number for number in numbers))


def events(told: bytes) -> list[tuple[str, Any]]:
    """Return server-sent events as browsers read them."""
    found = []
    for event in told.decode().split("\n\n")[:-1]:
        name, data = event.split("\n")
        found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


class Viewer:
    """A viewer that works as the page does."""

    def __init__(self) -> None:
        self.seen = Received()
        self.rows: list[int] = []
        self.resets = 0
        self.skipped = 0
        self.told: dict[str, Any] = {}

    def look(self, hub: Hub) -> None:
        """Take all new rows."""
        told, self.seen = hub.since(self.seen)
        for name, data in events(b"".join(told)):
            if name == "rows":
                if data["reset"]:
                    self.rows, self.skipped = [], 0
                    self.resets += 1
                self.rows += [row["n"] for row in data["rows"]]
                self.skipped += data["skipped"]
            else:
                self.told[name] = data


@given(st.lists(st.sampled_from(["row", "rows", "nothing", "begin", "fast", "slow"]), max_size=60))
def test_each_viewer_has_the_last_rows_in_order(acts: list[str]) -> None:
    """This holds however often a viewer looks, and whenever it joins."""

    async def play() -> None:
        hub, viewers, number, first = Hub(), [Viewer(), Viewer()], 0, 0
        hub.begin(rows())
        for act in acts:
            match act:
                case "row" | "rows":
                    count = 1 if act == "row" else 700
                    hub.add(rows(*range(number, number + count)))
                    number += count
                case "begin":
                    hub.begin(rows(*range(number, number + 3)))
                    first, number = number, number + 3
                case "fast":
                    viewers[0].look(hub)
                case "slow":
                    viewers[1].look(hub)
        for viewer in (*viewers, Viewer()):
            viewer.look(hub)
            kept = viewer.rows[-MOST_ROWS + 700 :]
            assert kept == [*range(max(first, number - len(kept)), number)]
            assert len(viewer.rows) >= min(number - first, MOST_ROWS - 700)

    asyncio.run(play())


def test_a_viewer_that_keeps_up_is_never_reset() -> None:
    """The viewer gets each row once."""

    async def play() -> None:
        hub, viewer = Hub(), Viewer()
        hub.begin(rows(0))
        for number in range(1, 3 * MOST_ROWS, 100):
            hub.add(rows(*range(number, number + 100)))
            viewer.look(hub)
        assert viewer.resets == 1
        assert viewer.rows == [*range(viewer.rows[-1] + 1)]

    asyncio.run(play())


def test_long_rows_are_kept_within_bounds() -> None:
    """The hub keeps the last rows."""

    async def play() -> None:
        hub = Hub()
        hub.begin(rows())
        for number in range(100):
            hub.add(Rows((b'{"n":%d,"x":"%s"}' % (number, b"x" * (MOST_BYTES // 20)),)))
        whole = b"".join(hub.since(Received())[0])
        assert len(whole) < MOST_BYTES + (MOST_BYTES // 10)
        assert events(whole)[0][1]["rows"][-1]["n"] == 99

    asyncio.run(play())


def test_state_and_problem_come_once_each_time_they_change() -> None:
    """A lasting problem is sent once, and its end is sent once."""

    async def play() -> None:
        hub, viewer = Hub(), Viewer()
        hub.set_problem({})
        hub.set_state({"reason": "Running", "now": "12:00:00"})
        viewer.look(hub)
        assert viewer.told == {"state": {"reason": "Running", "now": "12:00:00"}}
        hub.set_state({"reason": "Running", "now": "12:00:02"})
        assert hub.since(viewer.seen)[0] == []
        for _ in range(2):
            hub.set_problem({"error": "away"})
        told, viewer.seen = hub.since(viewer.seen)
        assert events(b"".join(told)) == [("problem", {"error": "away"})]
        assert hub.since(viewer.seen)[0] == []
        hub.set_problem({})
        assert events(b"".join(hub.since(viewer.seen)[0])) == [("problem", {})]

    asyncio.run(play())


def test_rows_that_may_not_be_shown_are_forgotten() -> None:
    """All viewers forget the rows, and later viewers never get them."""

    async def play() -> None:
        hub, viewer = Hub(), Viewer()
        hub.begin(rows(1, 2))
        viewer.look(hub)
        hub.clear()
        hub.clear()
        late = Viewer()
        for one in (viewer, late):
            one.look(hub)
            assert one.rows == []
        assert viewer.resets == 2

    asyncio.run(play())


def test_waiting_ends_with_news_or_the_time() -> None:
    """All waiting viewers go on."""

    async def play() -> None:
        hub = Hub()
        await hub.wait(0.01)
        waiting = [asyncio.create_task(hub.wait(60)) for _ in range(3)]
        await asyncio.sleep(0)
        hub.set_state({})
        await asyncio.wait_for(asyncio.gather(*waiting), 5)

    asyncio.run(play())
