"""Faults of a link, by the names that they have in tables of tests."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.wire.faulty_wire import Client, FaultyWire


@dataclass(frozen=True)
class Fault:
    """A fault of a link.

    Attributes:
        name: its name in the table.
        seconds: its duration; 0 for a moment, or for the life of the process.
        delay, loss: see Client.
        sudden: action of the proxy on a client in the midst of its work.
    """

    name: str
    seconds: float = 0.0
    delay: float = 0.0
    loss: float = 0.0
    sudden: Callable[[FaultyWire, Client, float], None] | None = None

    def happen(self, wire: FaultyWire, client: Client) -> None:
        """Begin the sudden part of the fault."""
        if self.sudden is not None:
            self.sudden(wire, client, self.seconds)


def _stall(_: FaultyWire, client: Client, seconds: float) -> None:
    client.stalled = time.monotonic() + seconds


def _reset(wire: FaultyWire, client: Client, _: float) -> None:
    wire.reset(client)


def _vanish(wire: FaultyWire, client: Client, seconds: float) -> None:
    wire.vanish(client, seconds)


DELAY: Final = Fault("delay 100 ms", delay=0.1)
LOSS: Final = Fault("loss 1 %", loss=0.01)
RESET: Final = Fault("reset", sudden=_reset)
FAULTS: Final = (
    DELAY,
    LOSS,
    Fault("stall 60 s", 60, sudden=_stall),
    RESET,
    Fault("half-open 20 s", 20, sudden=_vanish),
)
"""The faults of a table. Half-open connections stay dead; new ones are dead for these seconds."""

SHORT: Final = (DELAY, LOSS, RESET, Fault("half-open 2 s", 2, sudden=_vanish))
"""The same faults for a few seconds, for processes that wait only so long for an answer."""
