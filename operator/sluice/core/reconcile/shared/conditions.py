"""Conditions that `kubectl wait`, Flux and Argo CD read alike.

kstatus, which Flux and others use, decides by these rules: `Reconciling` means in progress,
`Stalled` means failed, otherwise `Ready` tells whether the resource is as wanted. So the first two
stand only while they are true, a final failure always sets `Stalled`, and a resource that is being
worked on says `Ready=Unknown`: `False` would read as an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from sluice.api.status.common import Condition, ConditionType

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

Tri = Literal["True", "False", "Unknown"]


class Saying(NamedTuple):
    """Why a resource is as it is: one word of the catalogue, and a sentence."""

    reason: str
    message: str


def working(saying: Saying, *, bounded: bool = True) -> dict[ConditionType, tuple[Tri, Saying]]:
    """Something is being done, or waited for."""
    found: dict[ConditionType, tuple[Tri, Saying]] = {
        ConditionType.READY: ("Unknown", saying),
        ConditionType.RECONCILING: ("True", saying),
    }
    if bounded:
        found[ConditionType.SUCCEEDED] = ("Unknown", saying)
    return found


def stalled(saying: Saying, *, bounded: bool = True) -> dict[ConditionType, tuple[Tri, Saying]]:
    """It failed, and does not go on by itself soon."""
    found: dict[ConditionType, tuple[Tri, Saying]] = {
        ConditionType.READY: ("False", saying),
        ConditionType.STALLED: ("True", saying),
    }
    if bounded:
        found[ConditionType.SUCCEEDED] = ("False", saying)
    return found


def suspended(saying: Saying, *, bounded: bool = True) -> dict[ConditionType, tuple[Tri, Saying]]:
    """Somebody wants it to wait."""
    found: dict[ConditionType, tuple[Tri, Saying]] = {
        ConditionType.READY: ("Unknown", saying),
        ConditionType.SUSPENDED: ("True", saying),
    }
    if bounded:
        found[ConditionType.SUCCEEDED] = ("Unknown", saying)
    return found


def ready(saying: Saying) -> dict[ConditionType, tuple[Tri, Saying]]:
    """A lasting thing is as it is wanted."""
    return {ConditionType.READY: ("True", saying)}


def succeeded(
    saying: Saying, *, verified: Saying | None
) -> dict[ConditionType, tuple[Tri, Saying]]:
    """A bounded thing is done, and was verified if anybody can tell."""
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
    """The conditions to write: those that are wanted, each with the time it last changed.

    Args:
        before: what stands in the status.
        wanted: by type, what is to stand; others are taken away.
        generation: of the resource that is spoken of.
        now: the time for conditions that change.
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
