"""How a copy that follows its source is to end, as its owner wishes it at the moment.

A wish is a record in the copy's journal, so that a follower sees it within a second.
"""

from __future__ import annotations

import hashlib
import hmac
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from pydantic import AwareDatetime, Field

from sluice.core.values.model import Frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

Cutover = Literal["None", "Drain", "SealAndDrain"]

_YEARS: Final = 10 * 366 * 24 * 3600


class Wish(Frozen):
    """How a copy is to end. By default it goes on until its source is sealed.

    Attributes:
        cutover: Drain ends it once nothing comes any more. SealAndDrain seals the source first.
        idle_seconds: it ends once nothing has come for so long.
        bytes: it ends once it has copied so many bytes or a block more, with those of its plan.
        time: it ends at this moment, by the clock of the follower.
    """

    cutover: Cutover = "None"
    idle_seconds: int | None = Field(default=None, ge=1, le=_YEARS)
    bytes: int | None = Field(default=None, ge=1, lt=1 << 63)
    time: AwareDatetime | None = Field(
        default=None, ge=datetime(1970, 1, 1, tzinfo=UTC), lt=datetime(9000, 1, 1, tzinfo=UTC)
    )


def wish_body(wish: Wish) -> Mapping[str, object]:
    """Return a wish as a part of a record."""
    return wish.model_dump(mode="json", exclude_defaults=True)


def consent(key: str, copy_id: str, number: int) -> str:
    """Return the proof that a wish to seal the source comes from the copy's owner.

    Any client that may write to the target's scope can write into a journal. It must not be able to
    have the source sealed, which perhaps it may not even read, and which no store undoes.

    Args:
        key: a text that only those know who may wish it; empty if no client may.
        copy_id: the copy.
        number: how many wishes are recorded before. So an earlier consent proves nothing later.

    Returns:
        A text without white space. Empty for an empty key, and then it is no proof.
    """
    if not key:
        return ""
    return hmac.new(key.encode(), f"{copy_id}/seal/{number}".encode(), hashlib.sha256).hexdigest()


def is_consent(proof: str, key: str, copy_id: str, number: int) -> bool:
    """Tell whether a proof is that of `consent`; never for an empty key."""
    wanted = consent(key, copy_id, number)
    return bool(wanted) and hmac.compare_digest(proof.encode(), wanted.encode())


class SealClaim(NamedTuple):
    """What a journal claims to prove: that its wish to seal the source is the owner's.

    Attributes:
        copy_id: the copy.
        number: how many wishes were recorded before.
        proof: the proof, which is not checked yet.
    """

    copy_id: str
    number: int
    proof: str

    def is_owners(self, key: str) -> bool:
        """Tell whether it is right, for those who know the key."""
        return is_consent(self.proof, key, self.copy_id, self.number)
