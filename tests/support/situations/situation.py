"""A resource in one of the states that it can be in: see `situations`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from sluice import errors

CURRENT: Final = "Current"
FAILED: Final = "Failed"
IN_PROGRESS: Final = "InProgress"
TERMINATING: Final = "Terminating"

DOWN: Final = errors.StoreUnavailable("no connection to 127.0.0.1:9090: Connection refused")


@dataclass(frozen=True, kw_only=True)
class Situation:
    """A resource in a state.

    Attributes:
        kind: the resource's kind.
        name: the name of the state and of the object.
        means: an account of the events before, for readers.
        kstatus: the status that kstatus has to compute.
        body: the object.
    """

    kind: str
    name: str
    means: str
    kstatus: str
    body: dict[str, Any]
