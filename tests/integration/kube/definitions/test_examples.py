"""The resources that users copy from Sluice's files: the examples, and the guides' YAML."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import pytest
import yaml

from sluice.api.registry import KINDS
from support.command.screens import yaml_blocks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from localcluster import Cluster

pytestmark = pytest.mark.usefixtures("definitions")

ROOT: Final = Path(__file__).parents[4]
EXAMPLES: Final = sorted(
    path for path in (ROOT / "examples").glob("*.yaml") if path.stem != "values"
)
GUIDES: Final = [
    ROOT / "docs" / f"{name}.md"
    for name in (
        "streamcopy",
        "streamstore",
        "shared-stores",
        "ephemeralstream",
        "scopecopy",
        "scope-archives",
    )
]


@pytest.fixture(scope="module")
def namespace(kube: Cluster) -> Iterator[str]:
    """Yield a namespace in which examples can be applied."""
    name = f"examples-{uuid4().hex[:12]}"
    kube.kubectl("create", "namespace", name)
    yield name
    kube.kubectl("delete", "namespace", name, "--wait=false")


def objects_in(text: str) -> list[dict[str, Any]]:
    """Return the objects of a text, for the namespace of the test."""
    objects = [one for one in yaml.safe_load_all(text) if one]
    for one in objects:
        one["metadata"].pop("namespace", None)
    return objects


def applied(kube: Cluster, namespace: str, objects: list[dict[str, Any]]) -> list[str]:
    """Return the names of the objects that the API server would take."""
    words = ("apply", "--dry-run=server", f"--namespace={namespace}", "--filename=-")
    return kube.kubectl(*words, "--output=name", stdin=yaml.safe_dump_all(objects)).splitlines()


def test_the_api_server_takes_the_examples(kube: Cluster, namespace: str) -> None:
    """The API server accepts each example unchanged. Each has a resource of Sluice."""
    ours = {kind.name for kind in KINDS}
    every = {path: objects_in(path.read_text(encoding="utf-8")) for path in EXAMPLES}
    for path, objects in every.items():
        assert ours & {one["kind"] for one in objects}, path
    together = [one for objects in every.values() for one in objects]
    assert len(applied(kube, namespace, together)) == len(together)


def test_the_api_server_takes_the_yaml_of_the_guides(kube: Cluster, namespace: str) -> None:
    """The API server accepts each YAML block of the guides."""
    blocks = {path: yaml_blocks(path) for path in GUIDES}
    assert all(len(found) >= 2 for found in blocks.values())
    together = [one for found in blocks.values() for block in found for one in objects_in(block)]
    assert len(applied(kube, namespace, together)) == len(together)
