"""Says what takes long, and how long it took."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from localcluster.commands import Say


@contextmanager
def step(say: Say, what: str) -> Iterator[None]:
    """Says what begins, and how long it took once it is done."""
    say(f"{what} ...")
    started = time.monotonic()
    yield
    say(f"{what}: {time.monotonic() - started:.1f} s")
