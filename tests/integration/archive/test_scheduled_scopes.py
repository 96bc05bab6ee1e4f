"""`sluice` with a scope that is archived again and again, as the Java client sees it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import pytest

from support.command.restores import bucket_store, volume
from support.command.scope_files import ScopeFile, states
from support.store.scopes import SPLIT, Sketch, assert_equal, fill, names_in, seen
from support.until import TIGHT, until

if TYPE_CHECKING:
    from pathlib import Path

    from localstore import ForeignClient, Standalone
    from s3gateway import Gateway
    from support.store.scopes import Seen

SKETCHES: Final = (
    Sketch(name="audit", events=0),
    Sketch(name="clicks", segments=2, events=120, scales=(SPLIT,)),
    Sketch(name="orders", segments=2, events=80),
)
NAMES: Final = ("audit", "clicks", "orders")
COPIED: Final = dict.fromkeys(NAMES, "Copied")
NIGHTLY: Final[dict[str, Any]] = {
    "onExists": "Append",
    "schedule": {"cron": "0 3 * * *", "timeZone": "Europe/Berlin"},
}


class Shop:
    """A scope in the store that is archived nightly, and restored into other scopes.

    Args:
        folder: the folder of files.
        standalone, foreign: the store, and another client of it.
        backend: the backend of the archives' store.
        spec: further fields of the spec of the nightly copy.
    """

    def __init__(
        self,
        folder: Path,
        standalone: Standalone,
        foreign: ForeignClient,
        backend: dict[str, object],
        **spec: Any,
    ) -> None:
        self.scope = f"shop-{uuid4().hex[:8]}"
        self.foreign, self._standalone = foreign, standalone
        self._folder, self._backend = folder, backend
        fill(foreign, self.scope, SKETCHES)
        uri = standalone.controller_uri
        self.nightly = ScopeFile(
            folder, uri, backend, "nightly", self.scope, spec={**NIGHTLY, **spec}
        )

    def content(self, scope: str | None = None) -> dict[str, Seen]:
        """Return the witnesses' view of the streams of a scope."""
        return seen(self._standalone.segment_store, self.foreign, scope or self.scope)

    def restored(self, code: int = 0, **source: Any) -> tuple[dict[str, str], dict[str, Seen]]:
        """Restore into a new scope. Return the streams' states, and the witnesses' view of them."""
        target = f"{self.scope}-{uuid4().hex[:4]}"
        back = ScopeFile(
            self._folder,
            self._standalone.controller_uri,
            self._backend,
            "back",
            target,
            restores=True,
        )
        archive = {"storeRef": {"name": "backup"}, "path": back.path, **source}
        back.spec = {"source": {"archive": archive}}
        copied = back.states(code=code)
        verified = back.run("verify")
        assert verified.code == 0, verified.out
        return copied, self.content(target)

    def records(self) -> list[int]:
        """Return the numbers of the recorded runs, in a volume."""
        found = self.nightly.place.glob("runs/scope-*.json")
        return sorted(int(one.stem.removeprefix("scope-"), 16) for one in found)

    def runs(self, stream: str) -> int:
        """Return how many runs the archive of a stream has, in a volume."""
        head = max((self.nightly.place / stream / "heads").iterdir())
        return len(json.loads(head.read_bytes())["runs"])


@pytest.fixture
def in_volume(tmp_path: Path) -> dict[str, object]:
    """Return a volume for archives."""
    return volume(tmp_path)


@pytest.mark.exhaustive
def test_nightly_runs_are_made_and_any_of_them_is_restored(
    tmp_path: Path,
    standalone: Standalone,
    foreign: ForeignClient,
    gateway: Gateway,
    bucket: str,
) -> None:
    """Any nightly run in a bucket can be restored: the last, or by number or time."""
    shop = Shop(tmp_path, standalone, foreign, bucket_store(tmp_path, gateway, bucket))
    first = shop.content()
    assert shop.nightly.states() == COPIED
    between = datetime.now(UTC) + timedelta(seconds=1)
    until("the next second", lambda: datetime.now(UTC) > between)
    foreign.write(shop.scope, "orders", events=30, keys=4)
    foreign.create(shop.scope, "young")
    foreign.write(shop.scope, "young", events=10, keys=2)
    foreign.delete(shop.scope, "audit")
    second = shop.content()
    assert set(second) == {"clicks", "orders", "young"}
    ended = shop.nightly.run("run", "-o", "json")
    assert states(ended) == dict.fromkeys(second, "Copied")
    assert "run 2 of the scope is recorded" in ended.err
    copied, found = shop.restored()
    assert copied == dict.fromkeys(second, "Copied")
    assert_equal(second, found)
    for choice in ({"run": 1}, {"until": f"{between:%Y-%m-%dT%H:%M:%SZ}"}):
        copied, found = shop.restored(**choice)
        assert copied == COPIED
        assert_equal(first, found)


@pytest.mark.exhaustive
def test_a_run_that_is_killed_is_gone_on_with(
    tmp_path: Path, standalone: Standalone, foreign: ForeignClient, in_volume: dict[str, object]
) -> None:
    """After a kill, no stream gets a second run, and the scope's run gets one record."""
    # At this rate the last stream with events takes a second.
    limits = {"bytesPerSecond": "8Ki"}
    shop = Shop(tmp_path, standalone, foreign, in_volume, parallelism=1, limits=limits)
    place = shop.nightly.place

    def is_over() -> bool:
        # A run that is killed between its head and the deletion of its notes leaves these to a
        # sweep.
        heads = place.glob("*/heads/*")
        return any(not [*head.parents[1].glob("work/*")] for head in heads)

    with shop.nightly.running() as process:
        until("an archive", is_over, poll=TIGHT)
        process.kill()
        process.wait()
    assert 0 < len([*place.glob("*/heads/*")]) < len(NAMES)
    assert shop.records() == []
    del shop.nightly.spec["limits"]
    assert shop.nightly.states() == COPIED
    assert [len([*place.glob(f"{name}/heads/*")]) for name in NAMES] == [1, 1, 1]
    assert shop.records() == [1]
    assert not [*place.glob("**/work/*")]
    assert_equal(shop.content(), shop.restored()[1])


@pytest.mark.exhaustive
def test_retention_removes_old_runs_but_none_of_a_stream_that_is_gone(
    tmp_path: Path, standalone: Standalone, foreign: ForeignClient, in_volume: dict[str, object]
) -> None:
    """Runs that stay are whole. A restore of a removed run is refused by name."""
    shop = Shop(tmp_path, standalone, foreign, in_volume, retention={"keepLast": 2})
    assert shop.nightly.states() == COPIED
    foreign.delete(shop.scope, "audit")
    left = {"clicks": "Copied", "orders": "Copied"}
    for _ in range(3):
        foreign.write(shop.scope, "clicks", events=10, keys=4)
        assert shop.nightly.states() == left
    assert shop.records() == [3, 4]
    assert [shop.runs(name) for name in NAMES] == [1, 2, 2]
    copied, found = shop.restored()
    assert copied == left
    assert_equal(shop.content(), found)
    target = ScopeFile(
        tmp_path,
        standalone.controller_uri,
        in_volume,
        "old",
        f"{shop.scope}-old",
        restores=True,
        spec={
            "source": {
                "archive": {
                    "storeRef": {"name": "backup"},
                    "path": shop.nightly.path,
                    "run": 1,
                }
            }
        },
    )
    refused = target.run("run")
    assert refused.code != 0
    assert "no run 1 of a scope; it has 3, 4" in " ".join(refused.err.split())
    assert names_in(foreign, f"{shop.scope}-old") is None


@pytest.mark.exhaustive
def test_a_stream_that_fails_is_named_and_the_last_complete_run_is_restored(
    tmp_path: Path, standalone: Standalone, foreign: ForeignClient, in_volume: dict[str, object]
) -> None:
    """Other streams are archived. A run with failures can be restored by its number."""
    shop = Shop(tmp_path, standalone, foreign, in_volume)
    first = shop.content()
    assert shop.nightly.states() == COPIED
    foreign.write(shop.scope, "orders", events=30, keys=4)
    foreign.delete(shop.scope, "clicks")
    foreign.create(shop.scope, "clicks")
    assert shop.nightly.states(code=6) == COPIED | {"clicks": "SourceReplaced"}
    assert shop.records() == [1, 2]
    copied, found = shop.restored()
    assert copied == COPIED
    assert_equal(first, found)
    copied, found = shop.restored(run=2)
    assert copied == {"audit": "Copied", "orders": "Copied"}
    present = shop.content()
    assert_equal({name: present[name] for name in copied}, found)
