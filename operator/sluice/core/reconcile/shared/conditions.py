"""Build conditions that `kubectl wait`, Flux and Argo CD read alike.

kstatus, which Flux and others use, has three rules: `Reconciling` means in progress, `Stalled`
means failed, and otherwise `Ready` tells whether the resource is as wanted. So the status lists the
first two only while they are true. A final failure always sets `Stalled`. A resource that is being
worked on has `Ready=Unknown`, since `False` would read as an error.

`Ready` has the sentence that tells the state, how it came about and what to do. The conditions
beside it have the same reason, and a short message of their own that names `Ready`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from sluice.api.status.common import Condition, ConditionType

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from sluice.api.status.common import ResourceStatus

Tri = Literal["True", "False", "Unknown"]


class Saying(NamedTuple):
    """Reason and message of a condition: one word of the catalogue, and a sentence."""

    reason: str
    message: str


_WORKS: Final = "The operator works on it, or waits. The condition Ready says more."
_STALLS: Final = "It cannot go on until something is changed. The condition Ready says what."
_SUSPENDS: Final = "spec.suspend is true."
_ENDED: Final[dict[Tri, str]] = {
    "True": "The work is done.",
    "False": "The work has failed. The condition Ready says why.",
    "Unknown": "The work has not ended.",
}


def working(saying: Saying, *, bounded: bool = True) -> dict[ConditionType, tuple[Tri, Saying]]:
    """Give the conditions of a resource that is being worked on, or waits for something.

    Args:
        saying: the reason of each condition, and the message of Ready.
        bounded: whether resources of the kind end some day, and so have `Succeeded`.
    """
    beside = {ConditionType.RECONCILING: _WORKS}
    return _conditions("Unknown", saying, beside, bounded=bounded)


def stalled(saying: Saying, *, bounded: bool = True) -> dict[ConditionType, tuple[Tri, Saying]]:
    """Give the conditions of a resource that failed; arguments as those of `working`."""
    return _conditions("False", saying, {ConditionType.STALLED: _STALLS}, bounded=bounded)


def suspended(saying: Saying, *, bounded: bool = True) -> dict[ConditionType, tuple[Tri, Saying]]:
    """Give the conditions of a suspended resource; arguments as those of `working`."""
    beside = {ConditionType.SUSPENDED: _SUSPENDS}
    return _conditions("Unknown", saying, beside, bounded=bounded)


def _conditions(
    status: Tri, saying: Saying, beside: Mapping[ConditionType, str], *, bounded: bool
) -> dict[ConditionType, tuple[Tri, Saying]]:
    """Give Ready with its sentence, and the conditions beside it with their own messages."""
    found: dict[ConditionType, tuple[Tri, Saying]] = {ConditionType.READY: (status, saying)}
    for kind, message in beside.items():
        found[kind] = ("True", Saying(saying.reason, message))
    if bounded:
        found[ConditionType.SUCCEEDED] = (status, Saying(saying.reason, _ENDED[status]))
    return found


def ready(saying: Saying) -> dict[ConditionType, tuple[Tri, Saying]]:
    """Give the conditions of a resource without an end that is as its spec has it."""
    return {ConditionType.READY: ("True", saying)}


def succeeded(
    saying: Saying, *, verified: Saying | None
) -> dict[ConditionType, tuple[Tri, Saying]]:
    """Give the conditions of a resource that has ended well; `verified` if its data were."""
    found = _conditions("True", saying, {}, bounded=True)
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


def judged(
    before: ResourceStatus,
    written: ResourceStatus,
    kind: ConditionType,
    verdict: tuple[Tri, Saying],
    *,
    generation: int,
    now: datetime,
) -> tuple[Condition, ...]:
    """Give the conditions to write with a verdict about data beside them.

    An examination that could not be carried out takes no failure back: only one that passes does.

    Args:
        before: the status so far.
        written: the status to write.
        kind: the condition that has the verdict.
        verdict: its status, reason and message.
        generation: as of `merge`.
        now: as of `merge`.
    """
    found = before.condition(kind)
    if verdict[0] == "Unknown" and found is not None and found.status == "False":
        return written.conditions
    wanted: dict[ConditionType, tuple[Tri, Saying]] = {
        one: (said.status, Saying(said.reason, said.message))
        for one in ConditionType
        if (said := written.condition(one)) is not None
    }
    return merge(before.conditions, wanted | {kind: verdict}, generation=generation, now=now)
