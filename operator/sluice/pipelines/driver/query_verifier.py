"""Verify the results of a query in a pod, and write in its termination message what was found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from sluice.core.query.recount import Recount, SinkRecount
from sluice.core.values.trouble import Trouble
from sluice.engine.query.ledger import QueryLedger
from sluice.errors import SluiceError
from sluice.pipelines.driver.ending import reported
from sluice.pipelines.driver.query_driver import read_request
from sluice.pipelines.driver.stopping import SigtermHandler
from sluice.pipelines.programs.stores import Stores
from sluice.pipelines.query.duck import Room
from sluice.pipelines.query.recount import recounted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from sluice.config import Settings
    from sluice.pipelines.query.recount import SinkComparison

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryVerifierOptions:
    """The command-line options of a verification.

    Attributes:
        request, request_sha256, termination_log: as of a query's driver.
        memory: bytes of the other engine in memory.
        disk: bytes of the other engine on disk.
        slots: threads of the other engine.
    """

    request: Path
    request_sha256: str | None = None
    memory: int = 1 << 30
    disk: int = 1 << 30
    slots: int = 2
    termination_log: Path | None = None


def verify_query(options: QueryVerifierOptions, settings: Settings) -> Trouble | None:
    """Verify a query, and write the termination message.

    Returns:
        Why nothing was compared; None if something was, also if results differ.

    Raises:
        Terminated: SIGTERM came.
        Exception: a bug in Sluice.
    """
    with SigtermHandler() as stop:
        return reported(
            "query verifier", options.termination_log, lambda: _do(options, settings, stop)
        )


def _do(
    options: QueryVerifierOptions, settings: Settings, stop: SigtermHandler
) -> tuple[Trouble | None, Recount | None]:
    try:
        return None, _recount(options, settings)
    except SluiceError as error:
        return Trouble.of(error), None
    except KeyboardInterrupt:
        stop.check()  # DuckDB does not pass Terminated on
        raise


def _recount(options: QueryVerifierOptions, settings: Settings) -> Recount:
    request = read_request(options.request, options.request_sha256)
    room = Room(memory=options.memory, disk=options.disk, threads=options.slots)
    first = request.sinks[0]
    with Stores(settings) as stores:
        ledger = QueryLedger(stores[first.store], request.query_id, first.stream)
        found = _report(recounted(request, ledger, stores, settings, room=room))
    _log.info("compared", **found.model_dump(mode="json"))
    return found


def _report(found: Sequence[SinkComparison]) -> Recount:
    return Recount(
        version=found[0].version,
        batch=found[0].batch,
        late=found[0].late,
        sinks=tuple(
            SinkRecount(
                sink=str(one.sink),
                rows=one.rows,
                missing=one.missing,
                extra=one.extra,
            )
            for one in found
        ),
    )
