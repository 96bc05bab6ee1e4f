from pathlib import Path

from sluice.archive.runs.source import ArchivedStore
from sluice.config import Settings
from sluice.core.values.model import ArchivedRun, StoreAddress
from sluice.engine.slices.slices import VerifySlice
from sluice.pipelines.spark import tasks

SETTINGS = Settings()


def test_a_slice_is_read_in_the_run_that_it_names(tmp_path: Path) -> None:
    """One worker gets slices of many archives, and caches few of the runs."""
    place = StoreAddress(backend="volume", uri=tmp_path.as_uri())
    for number in range(2 * tasks._MOST_RUNS):
        run = ArchivedRun(path=f"shop/s{number}", run=1, sha256="ab" * 32)
        work = VerifySlice(
            stream=number,
            segment=0,
            archive=run,
            source="shop/s/0",
            staging="shop/s/0#transaction.0",
            origin=0,
            start=0,
            end=1,
            limit=1,
            known={},
        )
        store = tasks._source(work, [place], SETTINGS)
        assert isinstance(store, ArchivedStore)
        assert store.pinned == run
        assert tasks._source(work, [place], SETTINGS) is store
    assert tasks._run.cache_info().currsize == tasks._MOST_RUNS
