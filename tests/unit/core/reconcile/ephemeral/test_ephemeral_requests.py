"""Requests by annotation to an EphemeralStream."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from sluice.core.reconcile.ephemeral.decide import asks_store, reconcile_ephemeral
from sluice.core.reconcile.ephemeral.world import Configure
from support.reconcile.ephemerals import AWAY, OURS, after, claimed, ephemeral, said, stands, world

if TYPE_CHECKING:
    from sluice.core.reconcile.ephemeral.world import EphemeralWorld

DRIFTED = replace(OURS, drift=("retention is Bytes/1, not None/0",))


def test_a_drifted_stream_is_changed_back_when_that_is_asked_for() -> None:
    """A request is fulfilled once the stream has the spec's configuration."""
    seen = claimed(ephemeral(), requested_at="now")
    decision = reconcile_ephemeral(seen, world(holding=DRIFTED))
    assert decision.actions == (Configure(),)
    assert said(decision) == ("Unknown", "Configuring")
    seen = after(seen, decision)
    assert seen.asked
    decision = reconcile_ephemeral(seen, world(holding=OURS))
    assert (decision.actions, said(decision)) == ((), ("True", "Claimed"))
    assert not after(seen, decision).asked


def test_a_wish_that_was_heard_is_not_heard_again() -> None:
    """After a fulfilled request, later drift is reported and not reverted."""
    seen = claimed(ephemeral(), requested_at="now")
    seen = after(seen, reconcile_ephemeral(seen, world(holding=OURS)))
    decision = reconcile_ephemeral(seen, world(holding=DRIFTED))
    assert decision.actions == ()
    assert stands(decision, "Drifted")
    later = replace(seen, requested_at="later")
    assert reconcile_ephemeral(later, world(holding=DRIFTED)).actions == (Configure(),)


def test_a_wish_stays_heard_when_the_annotation_goes() -> None:
    """Git may remove the annotation and set the same value again: that is no new request."""
    seen = claimed(ephemeral(), requested_at="now")
    seen = after(seen, reconcile_ephemeral(seen, world(holding=OURS)))
    gone = replace(seen, requested_at=None)
    status = reconcile_ephemeral(gone, world(holding=OURS)).status
    assert status.last_handled_requested_at == "now"


@pytest.mark.parametrize("around", [world(store=None), world(store=AWAY)])
def test_a_wish_does_not_outlast_a_store_that_is_away(around: EphemeralWorld) -> None:
    """The request asks for a look now. An unreachable store does not keep the request open."""
    seen = claimed(ephemeral(), requested_at="now")
    assert not asks_store(seen, around)
    assert not after(seen, reconcile_ephemeral(seen, around)).asked


def test_an_adopted_stream_without_a_config_has_nothing_to_be_changed_back_to() -> None:
    """An adopted stream without a config stays as it was adopted."""
    seen = claimed(ephemeral(adopt="IfUnowned"), requested_at="now")
    status = seen.status.model_copy(update={"config_hash": None})
    decision = reconcile_ephemeral(replace(seen, status=status), world(holding=DRIFTED))
    assert decision.actions == ()
    assert not after(seen, decision).asked
