"""Signals to a verification of a query while the other engine computes."""

from __future__ import annotations

import json
import os
import signal
import threading
from typing import TYPE_CHECKING

import pytest

from sluice.config import Settings
from sluice.pipelines.driver import query_verifier, stopping
from sluice.pipelines.driver.query_verifier import QueryVerifierOptions, verify_query
from sluice.pipelines.driver.stopping import Terminated
from sluice.pipelines.query.duck import ROOM, ask, opened_database

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LONG = "SELECT sum(a.range * b.range) FROM range(1000000) a, range(100000) b"
"""A query that takes minutes."""


def compute(*_: object) -> None:
    """Have DuckDB compute something for minutes."""
    with opened_database(ROOM._replace(threads=1)) as database:
        ask(lambda: database.execute(LONG).fetchall())


@pytest.fixture
def signalled(request: pytest.FixtureRequest) -> Iterator[None]:
    """Have this process get a signal soon."""
    soon = threading.Timer(0.2, os.kill, (os.getpid(), request.param))
    soon.start()
    yield
    soon.join()


@pytest.mark.timeout(30)
@pytest.mark.usefixtures("signalled")
@pytest.mark.parametrize("signalled", [signal.SIGINT], indirect=True)
def test_ctrl_c_ends_what_duckdb_computes() -> None:
    """Ctrl-C is no bug in Sluice: the command ends as it does anywhere else."""
    with pytest.raises(KeyboardInterrupt):
        compute()


@pytest.mark.timeout(30)
@pytest.mark.usefixtures("signalled")
@pytest.mark.parametrize("signalled", [signal.SIGTERM], indirect=True)
def test_sigterm_while_duckdb_computes_interrupts_the_verification(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A pod that has to go says that it was interrupted, and the operator tries again."""
    monkeypatch.setattr(stopping, "GRACE", 0.1)
    monkeypatch.setattr(query_verifier, "_recount", compute)
    log = tmp_path / "log"
    with pytest.raises(Terminated):
        verify_query(
            QueryVerifierOptions(request=tmp_path / "request", termination_log=log), Settings()
        )
    assert json.loads(log.read_text())["reason"] == "Interrupted"
