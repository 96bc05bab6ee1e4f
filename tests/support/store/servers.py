"""Servers of a whole run, each of which ends after the last test that needs it.

A start costs as much as a short test, so all tests share a server. But an idle store takes a
thirtieth of a processor, and many servers would idle until the end of a run.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_LAST: Final = pytest.StashKey[dict[str, pytest.Item]]()
"""The last test that needs a fixture, by the fixture's name."""

_ENDS: Final = pytest.StashKey[dict[str, "Callable[[], None]"]]()
"""The functions that end the fixtures in use, by the fixture's name."""


@contextmanager
def ended_early(request: pytest.FixtureRequest, end: Callable[[], None]) -> Iterator[None]:
    """Run the block in which a fixture of the whole run is used.

    Args:
        request: the fixture's request. No test may get the fixture by `getfixturevalue`.
        end: callback after the last test that needs it, or at the end of the block.
    """
    name = str(request.fixturename)
    ends = request.config.stash.setdefault(_ENDS, {})
    ends[name] = end
    yield
    if name in ends:
        ends.pop(name)()


def see_last(session: pytest.Session) -> None:
    """Record the last test of each fixture."""
    session.config.stash[_LAST] = {
        name: item for item in session.items for name in getattr(item, "fixturenames", ())
    }


def end_unneeded(item: pytest.Item) -> None:
    """End the fixtures that no test after this one needs."""
    ends, last = item.config.stash.get(_ENDS, {}), item.config.stash[_LAST]
    for name in [name for name in ends if last.get(name) is item]:
        ends.pop(name)()
