"""Requests that a copy refuses if it follows the streams of a scope."""

from __future__ import annotations

import pytest

from sluice.engine.scope.planning import resolve_scope
from sluice.errors import InvalidSpec
from support.engine.plans import ADDRESS
from support.engine.scope_drivers import SharedStore
from support.engine.scope_requests import put
from support.following.followed_scopes import FOLLOW
from support.model import World


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"on_exists": "Append"}, "spec.onExists"),
        ({"move": True}, "spec.sourceOnComplete"),
        ({"verify": False}, "spec.mode"),
    ],
)
def test_a_request_to_follow_what_cannot_be_followed_is_refused(
    changes: dict[str, object], field: str
) -> None:
    """The error names the field, and no target is made."""
    world = World()
    put(world, "a")
    site = (ADDRESS, SharedStore(world))
    with pytest.raises(InvalidSpec) as caught:
        resolve_scope(FOLLOW.model_copy(update=changes), source=site, target=site)
    assert caught.value.field == field
    assert not [name for name in world.streams if name.scope == "out"]
