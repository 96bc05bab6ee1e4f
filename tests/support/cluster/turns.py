"""Turns at the installed operator: tests of two processes share it, or one has it alone."""

from __future__ import annotations

import fcntl
from contextlib import contextmanager
from typing import TYPE_CHECKING

from localstore.cache import cache_root, locked

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def taken(*, alone: bool) -> Iterator[None]:
    """Hold the operator during the block. The kernel gives it back if this process dies.

    While a test waits to have it alone, no other test gets it. Otherwise the wait would have no
    end.

    Args:
        alone: whether no other test may use the operator, since it is stopped or changed.
    """
    cache_root().mkdir(parents=True, exist_ok=True)
    with (cache_root() / "tests-operator.lock").open("w") as handle:
        with locked(cache_root() / "tests-operator-queue.lock"):
            fcntl.flock(handle, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield


@contextmanager
def one_at_a_time(what: str) -> Iterator[None]:
    """Keep other processes from the same work during the block.

    Args:
        what: name of the work, as a file can be named.
    """
    with locked(cache_root() / f"tests-{what}.lock"):
        yield
