"""An operator's questions about an EphemeralStream."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from sluice.core.claims.claim import Holding, Ownership
from sluice.kube.api.cache import Mirror
from sluice.kube.api.client import Api
from sluice.kube.ephemeral.observer import EphemeralObserver

NOBODY: Any = None


@pytest.mark.parametrize(
    "name", ["?/?", "", "a", "../../victim/secrets/login", "a/%2e%2e", "a/b/c"]
)
def test_a_stream_whose_tag_names_nobody_is_somebodys(name: str) -> None:
    """Any client may write a tag, so the name causes neither a call nor an error."""
    observer = EphemeralObserver(
        Api(cast("Any", None)), Mirror(), NOBODY, NOBODY, NOBODY, cluster="c", threads=NOBODY
    )
    holding = Holding(
        scope=True, ownership=Ownership.OTHERS, holder_uid="other", holder_resource=name
    )
    assert asyncio.run(observer._is_left(holding)) is False
