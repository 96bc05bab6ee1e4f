"""Open DuckDB with limits, and ask it something."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import duckdb

from sluice.core.query.checks import FIELD
from sluice.errors import InvalidQuery
from sluice.pipelines.query.duck_sql import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

_TAKEN: Final = "taken rows"
"""The rows that were read last, on their way into a table."""


class Room(NamedTuple):
    """What DuckDB may take.

    Attributes:
        memory: bytes in memory. It then goes on on disk.
        disk: bytes on disk.
        threads: threads; None for one for each processor.
    """

    memory: int = 1_000_000_000
    disk: int = 20_000_000_000
    threads: int | None = None


_INTERRUPTED: Final = "Query interrupted"
"""The text of the RuntimeError by which DuckDB replaces the exception of a signal's handler."""

ROOM: Final = Room()
"""Room on a machine of a user."""


@contextmanager
def opened_database(room: Room) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a database in memory, which goes on on disk if it has too much."""
    with (
        tempfile.TemporaryDirectory(prefix="sluice-verify-") as folder,
        duckdb.connect() as database,
    ):
        for setting, value in (
            ("TimeZone", "UTC"),
            ("memory_limit", f"{room.memory}B"),
            ("temp_directory", folder),
            ("max_temp_directory_size", f"{room.disk}B"),
            # The text of a query is a user's: it reaches no file and no network.
            ("enable_external_access", False),
        ):
            database.execute(f"SET {setting} = ?", [value])
        if room.threads is not None:
            database.execute("SET threads = ?", [room.threads])
        database.execute("SET lock_configuration = true")
        yield database


def take(database: duckdb.DuckDBPyConnection, statement: str, rows: pa.Table) -> None:
    """Execute a statement that takes rows from a table of Arrow."""
    database.register(_TAKEN, rows)
    # The name is quoted.
    ask(partial(database.execute, f"{statement} SELECT * FROM {quoted(_TAKEN)}"))  # noqa: S608
    database.unregister(_TAKEN)


def ask(call: Callable[[], Any]) -> Any:
    """Ask DuckDB something.

    Raises:
        InvalidQuery: it cannot compute this.
        KeyboardInterrupt: the handler of a signal has raised something meanwhile.
    """
    try:
        return call()
    except RuntimeError as error:
        if str(error) == _INTERRUPTED:
            raise KeyboardInterrupt from error
        raise
    except duckdb.OutOfMemoryException as error:
        raise InvalidQuery(
            f"DuckDB has too little room: {str(error).splitlines()[0]}",
            field="spec.runtime.driver.resources.memory",
            remedy="Give the pod more memory; half of it is DuckDB's. The profile decides about "
            "its disk. On the command line, verify on a larger machine.",
        ) from error
    except duckdb.Error as error:
        raise InvalidQuery(
            f"DuckDB cannot compute the query: {str(error).splitlines()[0]}", field=FIELD
        ) from error
