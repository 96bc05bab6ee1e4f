"""What all tests have in common that kill processes of a copy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.crash_lab import CrashLab

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager


@pytest.fixture(scope="session")
def lab(announce: Callable[[str], AbstractContextManager[None]]) -> Iterator[CrashLab]:
    """Gives a store of four processes behind proxies, with a source."""
    made = CrashLab()
    with announce("a Pravega cluster behind proxies, with a source"):
        made.start()
    yield made
    made.stop()
