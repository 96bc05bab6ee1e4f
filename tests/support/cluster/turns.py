"""Turns at the operator that is installed: tests of two processes use it together, or one alone."""

from __future__ import annotations

import fcntl
import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from localstore.cache import locked

if TYPE_CHECKING:
    from collections.abc import Iterator

_FOLDER = Path(tempfile.gettempdir()) / f"sluice-{os.getuid()}"
_QUEUE = _FOLDER / "tests-operator-queue.lock"
_OPERATOR = _FOLDER / "tests-operator.lock"


@contextmanager
def taken(*, alone: bool) -> Iterator[None]:
    """The operator is ours while the block runs; the kernel gives it back if we die.

    Who waits for it alone keeps others from taking it meanwhile: it would wait for ever otherwise.

    Args:
        alone: whether nobody else may use it, for it is stopped or changed.
    """
    _FOLDER.mkdir(parents=True, exist_ok=True)
    with _OPERATOR.open("w") as handle:
        with locked(_QUEUE):
            fcntl.flock(handle, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield


@contextmanager
def one_at_a_time(what: str) -> Iterator[None]:
    """Nobody else does the same meanwhile.

    Args:
        what: names it, as a file can be named.
    """
    with locked(_FOLDER / f"tests-{what}.lock"):
        yield
