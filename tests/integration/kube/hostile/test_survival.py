"""The operator survives all acts of a hostile tenant. This module runs after the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.tenants.evil_resources import copy

if TYPE_CHECKING:
    from support.tenants.evil import Evil

pytestmark = pytest.mark.timeout(400)


def test_the_operator_goes_on_after_all_of_this(evil: Evil) -> None:
    """The operator still runs, and looks at a new resource."""
    evil.make(copy("after"))
    evil.look("streamcopy", "after")
    assert evil.operator.is_running
    assert evil.operator.probe("livez") == (200, "ok\n")
