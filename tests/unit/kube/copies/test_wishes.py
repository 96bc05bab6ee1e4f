"""The rule for writing a copy's requested end into its journal."""

from __future__ import annotations

from typing import Any

from sluice.api.kinds.streamcopy import StreamCopy
from sluice.core.follow.lag import Followed
from sluice.core.values.wish import SealClaim, Wish, consent
from sluice.kube.copies.following import is_wished
from support.cases.resources import COPY

KEY = "6e1f1a52-7f0b-4b52-9a57-0c7d6ad3d9a1"
ID = "0" * 32
SEAL = Wish(cutover="SealAndDrain")


def resource(**spec: Any) -> StreamCopy:
    """Make a copy that follows its source."""
    return StreamCopy.model_validate(
        {**COPY, "spec": {**COPY["spec"], "mode": "Continuous", **spec}}
    )


def seen(wish: Wish, *claims: tuple[int, str]) -> Followed:
    """Make the content of a journal."""
    return Followed(wish=wish, claims=tuple(SealClaim(ID, *one) for one in claims))


def test_a_wish_is_written_until_the_journal_has_it() -> None:
    """Each process writes it once, since another process may have given another consent."""
    copy = resource(cutover="Drain")
    drain = Wish(cutover="Drain")
    assert not is_wished(copy, None, seen(Wish()), key=KEY)
    assert not is_wished(copy, None, seen(drain), key=KEY)
    assert is_wished(copy, drain, seen(drain), key=KEY)
    assert not is_wished(copy, drain, seen(Wish()), key=KEY)


def test_a_wish_in_the_owners_words_is_written_over_unless_it_is_the_owners() -> None:
    """No follower obeys a request to seal that another client has put in its place."""
    copy = resource(cutover="SealAndDrain")
    assert is_wished(copy, SEAL, seen(SEAL, (3, consent(KEY, ID, 3))), key=KEY)
    assert not is_wished(copy, SEAL, seen(SEAL, (4, "f" * 64)), key=KEY)
    assert not is_wished(copy, SEAL, seen(SEAL, (4, consent(KEY, ID, 3))), key=KEY)
    assert not is_wished(copy, SEAL, seen(SEAL, (3, consent("other", ID, 3))), key=KEY)
    assert not is_wished(copy, SEAL, seen(SEAL), key=KEY)


def test_nothing_is_written_where_nothing_can_be() -> None:
    """Nothing can be written before the target is recorded, or after the end is."""
    copy = resource(cutover="SealAndDrain")
    assert is_wished(copy, None, None, key=KEY)
    assert is_wished(copy, None, Followed(wish=None, claims=()), key=KEY)
    assert is_wished(copy, SEAL, Followed(wish=SEAL, claims=(), stopped="Idle"), key=KEY)
