"""Decide which changes of a status are told to the administrator's sink, and with which words.

A notice leaves the cluster. So it has the words of the catalogue in place of a status's message,
which may quote a tenant, a server or an address, and only numbers and times of the status.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from sluice.api.status.common import ConditionType
from sluice.core.catalogue import ENDS, meaning

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sluice.api.status.common import ResourceStatus

Outcome = Literal["Succeeded", "Failed"]

_TIMES: Final = ("startTime", "completionTime", "lastRunTime", "nextRunTime")
_COUNTS: Final = ("attempts", "failures", "streamCount")
_GROUPS: Final = ("progress", "streams", "archive")
"""Parts of a status of which a notice has the numbers."""


@dataclass(frozen=True, slots=True)
class Notice:
    """The end of the work for a resource.

    Attributes:
        outcome: whether it ended well.
        reason: the reason of its conditions.
        message: what the reason means, by the catalogue.
        facts: numbers and times of the status, by their names there.
    """

    outcome: Outcome
    reason: str
    message: str
    facts: Mapping[str, Any]


def notice_of(before: ResourceStatus, after: ResourceStatus) -> Notice | None:
    """Give the notice that a newly written status is worth; None if it reports no new end.

    Args:
        before: the status that it replaces.
        after: the status.
    """
    ending = _ending(after)
    if ending is None or ending == _ending(before):
        return None
    outcome, reason = ending
    return Notice(outcome, reason, meaning(reason), _facts(after.dump()))


def _ending(status: ResourceStatus) -> tuple[Outcome, str] | None:
    """Give outcome and reason of a status by which the work has ended; None for any other."""
    stalled, ready = status.condition(ConditionType.STALLED), status.condition(ConditionType.READY)
    if stalled is not None:
        return "Failed", stalled.reason
    if ready is not None and ready.status == "True" and ready.reason in ENDS:
        return "Succeeded", ready.reason
    return None


def _facts(status: Mapping[str, Any]) -> dict[str, Any]:
    facts = {name: status[name] for name in (*_TIMES, *_COUNTS) if name in status}
    for group in _GROUPS:
        found = status.get(group)  # an EphemeralStream's streams are a list
        pairs = found.items() if isinstance(found, dict) else ()
        numbers = {name: value for name, value in pairs if _is_number(value)}
        facts |= {group: numbers} if numbers else {}
    return facts


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
