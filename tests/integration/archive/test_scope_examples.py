"""The examples of scopes and archives work on real stores, by their own commands."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.command.restores import bucket_store
from support.command.sluice_command import Filed
from support.store.scopes import SPLIT, Sketch, assert_equal, fill, names_in, seen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from localstore import ForeignClient, Standalone
    from s3gateway import Gateway

EXAMPLES = Path(__file__).parents[3] / "examples"
SHOP = (
    Sketch(name="orders", segments=2, events=300, scales=(SPLIT,), policy={"tags": "team=shop"}),
    Sketch(name="data", events=50),
)


@dataclass
class Example(Filed):
    """An example with the test's addresses."""

    folder: Path
    name: str
    others: Mapping[str, str]
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def file(self) -> Path:
        """The file. Each access writes it anew."""
        text = (EXAMPLES / self.name).read_text()
        for one, other in self.others.items():
            assert one in text
            text = text.replace(one, other)
        path = self.folder / self.name
        path.write_text(text)
        return path


@pytest.mark.exhaustive
def test_a_scope_is_archived_and_restored(
    tmp_path: Path, standalone: Standalone, foreign: ForeignClient, gateway: Gateway, bucket: str
) -> None:
    """The commands in the first lines archive and restore. A further run finds nothing to do."""
    bucket_store(tmp_path, gateway, bucket)  # writes the files with the keys
    (tmp_path / "credentials" / "keys").rename(tmp_path / "credentials" / "archives-key")
    environment = {"SLUICE_CREDENTIALS_DIR": str(tmp_path / "credentials")}
    others = {
        "tcp://127.0.0.1:9090": standalone.controller_uri,
        "http://127.0.0.1:7070": gateway.endpoint,
        "bucket: archives": f"bucket: {bucket}",
    }
    fill(foreign, "shop", SHOP)
    before = seen(standalone.segment_store, foreign, "shop")
    for name in ("scopecopy-archive.yaml", "scopecopy-restore.yaml"):
        example = Example(tmp_path, name, others, environment)
        assert example.run("plan").code == 0
        for _ in range(2):
            ended = example.run()
            assert ended.code == 0, ended.err
    assert_equal(before, seen(standalone.segment_store, foreign, "shop-restored"))
    for scope in ("shop", "shop-restored"):
        for stream in names_in(foreign, scope) or []:
            foreign.delete(scope, stream)


@pytest.mark.exhaustive
def test_a_scope_is_archived_every_night_and_restored(
    tmp_path: Path, standalone: Standalone, foreign: ForeignClient, gateway: Gateway, bucket: str
) -> None:
    """Each command makes a run, and the last one is restored."""
    bucket_store(tmp_path, gateway, bucket)  # writes the files with the keys
    (tmp_path / "credentials" / "keys").rename(tmp_path / "credentials" / "archives-key")
    environment = {"SLUICE_CREDENTIALS_DIR": str(tmp_path / "credentials")}
    others = {
        "tcp://127.0.0.1:9090": standalone.controller_uri,
        "http://127.0.0.1:7070": gateway.endpoint,
        "bucket: archives": f"bucket: {bucket}",
    }
    fill(foreign, "shop", SHOP)
    nightly = Example(tmp_path, "scopecopy-nightly.yaml", others, environment)
    assert nightly.run("plan").code == 0
    for number in (1, 2):
        foreign.write("shop", "data", events=20, keys=4)
        ended = nightly.run()
        assert ended.code == 0, ended.err
        assert f"run {number} of the scope is recorded" in ended.err
    before = seen(standalone.segment_store, foreign, "shop")
    restored = Example(tmp_path, "scopecopy-restore.yaml", others, environment).run()
    assert restored.code == 0, restored.err
    assert_equal(before, seen(standalone.segment_store, foreign, "shop-restored"))
    for scope in ("shop", "shop-restored"):
        for stream in names_in(foreign, scope) or []:
            foreign.delete(scope, stream)
