"""Fixtures for all tests that kill processes of a copy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from s3gateway import versitygw
from support.crash.archive_crash_env import ArchiveCrashEnv
from support.crash.crash_env import CrashEnv
from support.store.servers import ended_early

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from localstore import ForeignClient, Standalone


@pytest.fixture(scope="session")
def env(
    request: pytest.FixtureRequest, announce: Callable[[str], AbstractContextManager[None]]
) -> Iterator[CrashEnv]:
    """Yield a store of four processes behind proxies, with a source."""
    made = CrashEnv()
    with announce("a Pravega cluster behind proxies, with a source"):
        made.start()
    with ended_early(request, made.stop):
        yield made


@pytest.fixture(scope="session")
def archive_env(
    standalone: Standalone,
    foreign: ForeignClient,
    announce: Callable[[str], AbstractContextManager[None]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[ArchiveCrashEnv]:
    """Yield an S3 gateway behind a proxy, and streams to archive and to restore."""
    folder = tmp_path_factory.mktemp("sluice-test-archive-env")
    with announce("an S3 gateway behind a proxy"):
        versitygw(lambda _: None)
        made = ArchiveCrashEnv(standalone, foreign, folder)
        made.start()
    yield made
    made.stop()
