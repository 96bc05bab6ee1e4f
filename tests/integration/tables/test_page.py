"""The examples of docs/notebooks.md, run on a real store and in a real Spark session."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support.archiving.archiving import archive_in
from support.command.spark import Spark
from support.store.clicks import KEYS, Clicks

if TYPE_CHECKING:
    from localstore import Standalone
    from sluice.stores.base import Store

PAGE = Path(__file__).parents[3] / "docs" / "notebooks.md"


@pytest.mark.exhaustive
def test_the_examples_of_the_page_work(
    clicks: Clicks,
    store: Store,
    standalone: Standalone,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All Python blocks of the page run, with the test's addresses and folders."""
    clicks.write(5)
    archive_in(tmp_path / "backup", clicks, store)
    secret = tmp_path / "secrets" / "store"
    secret.mkdir(parents=True)
    for name in ("username", "password"):
        (secret / name).write_text("x")
    monkeypatch.setenv("SLUICE_CREDENTIALS_DIR", str(secret.parent))
    text = PAGE.read_text()
    for there, here in {
        "tcp://localhost:9090": standalone.controller_uri,
        "tls://pravega.example:9090": standalone.controller_uri,
        ', ca="store/ca.crt"': "",
        '"shop/clicks"': f'"{clicks.name}"',
        "file:///backup/shop/clicks": (tmp_path / "backup").as_uri(),
        '"/data/': f'"{tmp_path}/',
    }.items():
        assert there in text
        text = text.replace(there, here)
    known: dict[str, Any] = {}
    in_spark = []
    for block in re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        if "spark" in block:
            in_spark.append(block)
        else:
            exec(block, known)  # noqa: S102 - our own page
    known["clicks"].close()
    rows = 5 * KEYS
    assert [len(known[name]) for name in ("table", "frame", "first", "later", "whole", "old")] == [
        *[rows] * 3,
        0,
        *[rows] * 2,
    ]
    assert sorted(known["means"]) == sorted((f"key-{n}", 0.5) for n in range(KEYS))
    code = "\n".join(in_spark)
    with Spark(tmp_path) as spark:
        spark.run(code)
        assert spark.run("result = [row['count'] for row in counts]") == [5] * KEYS
        assert spark.run("result = [lag.bytes for lag in lags]") == [0]
        count = "result = spark.read.parquet(out).count()"
        assert spark.run(count, out=str(tmp_path / "clicks")) == rows
