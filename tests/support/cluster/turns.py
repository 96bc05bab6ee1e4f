"""Turns at the operator that is installed: tests of two processes use it together, or one alone."""

from __future__ import annotations

import fcntl
from contextlib import contextmanager
from typing import TYPE_CHECKING

from localstore.cache import cache_root, locked

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def taken(*, alone: bool) -> Iterator[None]:
    """The operator is ours while the block runs; the kernel gives it back if we die.

    While a test waits to have it alone, no other one gets it: the wait would have no end otherwise.

    Args:
        alone: whether nobody else may use it, for it is stopped or changed.
    """
    cache_root().mkdir(parents=True, exist_ok=True)
    with (cache_root() / "tests-operator.lock").open("w") as handle:
        with locked(cache_root() / "tests-operator-queue.lock"):
            fcntl.flock(handle, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield


@contextmanager
def one_at_a_time(what: str) -> Iterator[None]:
    """Nobody else does the same meanwhile.

    Args:
        what: names it, as a file can be named.
    """
    with locked(cache_root() / f"tests-{what}.lock"):
        yield
