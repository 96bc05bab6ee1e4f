"""Build conditions that `kubectl wait`, Flux and Argo CD read alike.

kstatus, which Flux and others use, has three rules: `Reconciling` means in progress, `Stalled`
means failed, and otherwise `Ready` tells whether the resource is as wanted. So the status lists the
first two only while they are true. A final failure always sets `Stalled`. A resource that is being
worked on has `Ready=Unknown`, since `False` would read as an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from sluice.api.status.common import Condition, ConditionType

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

Tri = Literal["True", "False", "Unknown"]


class Saying(NamedTuple):
    """Reason and message of a condition: one word of the catalogue, and a sentence."""

    reason: str
    message: str


def working(saying: Saying, *, bounded: bool = True) -> dict[ConditionType, tuple[Tri, Saying]]:
    """Give the conditions of a resource that is being worked on, or waits for something.

    Args:
        saying: the reason and the message of each condition.
        bounded: whether resources of the kind end some day, and so have `Succeeded`.
    """
    found: dict[ConditionType, tuple[Tri, Saying]] = {
        ConditionType.READY: ("Unknown", saying),
        ConditionType.RECONCILING: ("True", saying),
    }
    if bounded:
        found[ConditionType.SUCCEEDED] = ("Unknown", saying)
    return found


def stalled(saying: Saying, *, bounded: bool = True) -> dict[ConditionType, tuple[Tri, Saying]]:
    """Give the conditions of a resource that failed; arguments as those of `working`."""
    found: dict[ConditionType, tuple[Tri, Saying]] = {
        ConditionType.READY: ("False", saying),
        ConditionType.STALLED: ("True", saying),
    }
    if bounded:
        found[ConditionType.SUCCEEDED] = ("False", saying)
    return found


def suspended(saying: Saying, *, bounded: bool = True) -> dict[ConditionType, tuple[Tri, Saying]]:
    """Give the conditions of a suspended resource; arguments as those of `working`."""
    found: dict[ConditionType, tuple[Tri, Saying]] = {
        ConditionType.READY: ("Unknown", saying),
        ConditionType.SUSPENDED: ("True", saying),
    }
    if bounded:
        found[ConditionType.SUCCEEDED] = ("Unknown", saying)
    return found


def ready(saying: Saying) -> dict[ConditionType, tuple[Tri, Saying]]:
    """Give the conditions of a resource without an end that is as its spec has it."""
    return {ConditionType.READY: ("True", saying)}


def succeeded(
    saying: Saying, *, verified: Saying | None
) -> dict[ConditionType, tuple[Tri, Saying]]:
    """Give the conditions of a resource that has ended well; `verified` if its data were."""
    found: dict[ConditionType, tuple[Tri, Saying]] = {
        ConditionType.READY: ("True", saying),
        ConditionType.SUCCEEDED: ("True", saying),
    }
    if verified is not None:
        found[ConditionType.VERIFIED] = ("True", verified)
    return found


_ORDER: Final = list(ConditionType)


def merge(
    before: Iterable[Condition],
    wanted: Mapping[ConditionType, tuple[Tri, Saying]],
    *,
    generation: int,
    now: datetime,
) -> tuple[Condition, ...]:
    """Give the conditions to write, each with the time of its last transition.

    Args:
        before: the conditions in the status.
        wanted: the new conditions by type; all others are removed.
        generation: the generation of the resource that they are about.
        now: the transition time of conditions that change.
    """
    old = {condition.type: condition for condition in before}
    merged = []
    for kind in sorted(wanted, key=_ORDER.index):
        status, saying = wanted[kind]
        was = old.get(kind)
        merged.append(
            Condition(
                type=kind.value,
                status=status,
                reason=saying.reason,
                message=saying.message,
                observed_generation=generation,
                last_transition_time=(
                    was.last_transition_time if was and was.status == status else now
                ),
            )
        )
    return tuple(merged)
