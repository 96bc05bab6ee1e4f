"""Messages about steps that take long."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from localcluster.commands import Say


@contextmanager
def step(say: Say, what: str) -> Iterator[None]:
    """Report the beginning of a step, and its seconds at the end."""
    say(f"{what} ...")
    started = time.monotonic()
    yield
    say(f"{what}: {time.monotonic() - started:.1f} s")
