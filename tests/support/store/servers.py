"""Servers of a whole run that end with the last test that needs them.

They cost as much to start as a short test, so there is one for all tests. But a store that idles
takes a thirtieth of a processor, and there are many until a run ends.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_LAST: Final = pytest.StashKey[dict[str, pytest.Item]]()
"""Of each fixture the last test that needs it."""

_ENDS: Final = pytest.StashKey[dict[str, "Callable[[], None]"]]()
"""What ends those fixtures that are in use."""


@contextmanager
def ended_early(request: pytest.FixtureRequest, end: Callable[[], None]) -> Iterator[None]:
    """The block in which a fixture of the whole run is used.

    Args:
        request: the fixture's. No test may ask for it by `getfixturevalue`: that is not foreseen.
        end: called after the last test that needs it, or at the end of the block.
    """
    name = str(request.fixturename)
    ends = request.config.stash.setdefault(_ENDS, {})
    ends[name] = end
    yield
    if name in ends:
        ends.pop(name)()


def see_last(session: pytest.Session) -> None:
    """Take down which test is the last one for each fixture."""
    session.config.stash[_LAST] = {
        name: item for item in session.items for name in getattr(item, "fixturenames", ())
    }


def end_unneeded(item: pytest.Item) -> None:
    """End what no test after this one needs."""
    ends, last = item.config.stash.get(_ENDS, {}), item.config.stash[_LAST]
    for name in [name for name in ends if last.get(name) is item]:
        ends.pop(name)()
