"""The namespaces that an operator serves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from sluice.errors import InvalidSpec
from sluice.kube.loop.queue import Key, Lane, WorkQueue
from sluice.kube.loop.served import Served
from sluice.kube.loop.settings import OperatorSettings

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("names", "excluded", "served"),
    [
        ((), (), {"shop", "team-a", "team-b"}),
        (("shop",), (), {"shop"}),
        ((), ("team-*",), {"shop"}),
        ((), ("*-a", "shop"), {"team-b"}),
        (("shop", "team-a"), ("team-*",), {"shop"}),
        ((), ("team",), {"shop", "team-a", "team-b"}),
        ((), ("*",), set()),
    ],
)
def test_what_is_excluded_is_not_served(
    names: tuple[str, ...], excluded: tuple[str, ...], served: set[str]
) -> None:
    """A pattern has to match the whole name."""
    found = Served(names, excluded)
    assert {one for one in ("shop", "team-a", "team-b") if found.include(one)} == served


def test_a_resource_that_is_not_served_is_nobodys_work() -> None:
    """It enters neither lane, whatever wakes it."""
    queue = WorkQueue(served=Served(excluded=["team-*"]))
    for lane in Lane:
        queue.add(Key("StreamCopy", "team-a", lane.value), lane=lane)
    queue.add(Key("StreamCopy", "shop", "a"))
    assert [queue.depth(lane) for lane in Lane] == [1, 0]


@pytest.mark.parametrize("pattern", ["Team", "a/b", "", "[a-z]", "a_b", "-a"])
def test_a_pattern_that_no_name_matches_is_refused(tmp_path: Path, pattern: str) -> None:
    """The message names the field."""
    file = tmp_path / "operator.yaml"
    file.write_text(yaml.safe_dump({"image": "sluice:1", "excludedNamespaces": [pattern]}))
    with pytest.raises(InvalidSpec, match="excludedNamespaces"):
        OperatorSettings.read(file)
