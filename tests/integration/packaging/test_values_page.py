"""The chart's values as the schema documents them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import genvalues

if TYPE_CHECKING:
    from collections.abc import Iterator

Path = tuple[str, ...]


def below(node: dict[str, Any], path: Path = ()) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield each value of the schema with its path, and the values in it with theirs."""
    node = genvalues.resolved(node)
    named = {**node.get("properties", {}), **node.get("patternProperties", {})}
    for name, sub in named.items():
        if isinstance(sub, dict) and sub.keys() != {"type"}:
            yield (*path, name), genvalues.resolved(sub)
            yield from below(sub, (*path, name))
    if "items" in node:
        yield from below(node["items"], (*path, "[]"))


def test_every_value_is_described() -> None:
    """Each value in the schema has a description, also in lists and profiles."""
    found = dict(below(genvalues.SCHEMA))
    assert len(found) > 150
    assert [path for path, node in found.items() if not node.get("description")] == []


def test_descriptions_are_sentences() -> None:
    """Each description begins with a capital, ends with a full stop and has no line break."""
    texts = [node["description"] for _, node in below(genvalues.SCHEMA)]
    assert [
        one for one in texts if not (one[0].isupper() and one.endswith(".") and "\n" not in one)
    ] == []


def test_every_value_has_a_default() -> None:
    """Each value has a default in values.yaml, except `global`, which Helm sets."""
    found = [path for path, _ in genvalues.values(genvalues.SCHEMA) if path != ("global",)]
    assert [path for path in found if not genvalues.default(path)] == []


def test_the_page_has_every_value() -> None:
    """The page names each value by its path, and equals the generator's output."""
    page = genvalues.PAGE.read_text(encoding="utf-8")
    paths = [path for path, _ in genvalues.values(genvalues.SCHEMA) if path != ("global",)]
    missing = [
        path
        for path in paths
        if f"`{'.'.join(path)}`" not in page and f"## {path[0]}\n" not in page
    ]
    assert missing == []
    assert page == genvalues.generate()
