"""Fixtures that the tests of operators in memory share."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from support.kube.archive_bench import ArchiveBench

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    """Yield threads for the calls to stores."""
    with ThreadPoolExecutor(4) as found:
        yield found


@pytest.fixture
def bench(threads: ThreadPoolExecutor) -> ArchiveBench:
    """Return the bench of a new archive, whose stream has two segments."""
    return ArchiveBench(threads)
