"""Programs that a test puts on PATH in place of the machine's."""

from collections.abc import Callable

PutProgram = Callable[[str, str], None]
