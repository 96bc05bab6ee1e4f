"""Define what a reason is, and name the kinds that report reasons."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from sluice.api import registry

COPY, SCOPE = ("StreamCopy",), ("ScopeCopy",)
COPIES = (*COPY, *SCOPE)
ARCHIVE = ("StreamArchive",)
ARCHIVING = (*SCOPE, *ARCHIVE)
DRIVEN = tuple(kind.name for kind in registry.DRIVEN)
"""The kinds that drivers work for."""

STORE, EPHEMERAL = ("StreamStore",), ("EphemeralStream",)
QUERY = ("StreamQuery",)


class ReasonPlace(StrEnum):
    """Where a reason appears."""

    READY = "Ready"
    """In the condition Ready and those that go with it, and in an event when it is new."""
    VERIFIED = "Verified"
    """In the condition Verified; of a query also in an event when a verification ends."""
    RESTORE_VERIFIED = "RestoreVerified"
    """In the condition RestoreVerified, and in an event when a drill ends."""
    DRIFTED = "Drifted"
    """In the condition Drifted."""
    HOOKS = "HooksSucceeded"
    """In the condition HooksSucceeded, and for a while as `READY`."""
    EVENT = "event"
    """In an event only."""
    HISTORY = "history"
    """In status.history only, as the reason of an attempt's end."""


class Reason(NamedTuple):
    """A reason of conditions and events.

    Attributes:
        name: one CamelCase word.
        kinds: the kinds that report it.
        means: what it means.
        remedy: what to do.
        warning: whether events with it are warnings.
        place: where it appears.
        ends: whether the work for the resource is over with it, by itself or until a request.
    """

    name: str
    kinds: tuple[str, ...]
    means: str
    remedy: str = "Nothing."
    warning: bool = False
    place: ReasonPlace = ReasonPlace.READY
    ends: bool = False
