"""Foreign writers that are active during work on their stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from localstore.reports import Paced


def assert_nothing_failed(live: Paced, say: Callable[[str], None]) -> None:
    """Check that a writer wrote events and the store took each. The speed depends on the machine.

    Args:
        live: the writer's report.
        say: callback that puts a line into the test log.
    """
    assert live.events > 0
    assert (live.failed, live.acknowledged) == (0, live.events)
    say(f"  a foreign writer wrote {live.events / live.seconds:,.0f} events/s meanwhile")
