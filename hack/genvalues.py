"""Generate the page of the chart's values from its schema and its defaults.

python hack/genvalues.py           write docs/values.md
python hack/genvalues.py --check   fail if the file is out of date
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
CHART = ROOT / "helm" / "sluice"
PAGE = ROOT / "docs" / "values.md"
SCHEMA: Final[dict[str, Any]] = json.loads((CHART / "values.schema.json").read_text("utf-8"))
DEFAULTS: Final[dict[str, Any]] = yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))

NOTE = "Made by hack/genvalues.py from the schema and the defaults of the chart: change these."
WHOLE: Final = {"affinity", "resources"}
"""Definitions of Kubernetes, which the page shows as one value."""

NAME: Final = "NAME"
"""The placeholder for a profile's name."""

_DEFAULT_PROFILE: Final = "default"

Node = dict[str, Any]


def resolved(node: Node) -> Node:
    """Return a node merged with the definition that it refers to. The node's own fields win."""
    reference: str = node.get("$ref", "")
    if not reference:
        return node
    name = reference.rpartition("/")[2]
    return {**SCHEMA["definitions"][name], **node, "of": name}


def values(node: Node, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Node]]:
    """Yield all values below a node, by their paths."""
    node = resolved(node)
    below = dict(node.get("properties", {}))
    for sub in node.get("patternProperties", {}).values():
        if isinstance(sub, dict) and "$ref" in sub:
            below[NAME] = sub
    if not below or node.get("of") in WHOLE:
        yield path, node
        return
    for name, sub in below.items():
        yield from values(sub, (*path, name))


def default(path: tuple[str, ...]) -> str:
    """Return a value's default, as YAML in one line; empty if it has none."""
    found: Any = DEFAULTS
    for name in path:
        key = _DEFAULT_PROFILE if name == NAME else name
        if not isinstance(found, dict) or key not in found:
            return ""
        found = found[key]
    if found == "":
        return '`""`'
    line = yaml.safe_dump(found, default_flow_style=True, width=10_000).splitlines()[0]
    return f"`{line}`"


def allowed(node: Node) -> str:
    """Return the allowed values, if they are few or a range."""
    if "enum" in node:
        return ", ".join(f"`{one}`" for one in node["enum"] if one)
    if "minimum" in node:
        return f"{node['minimum']} to {node['maximum']}"
    return {"boolean": "true, false"}.get(node.get("type", ""), "")


def section(name: str, node: Node) -> str:
    """Return the part of the page about a value of the first level."""
    found = list(values(node, (name,)))
    rows = [
        (f"`{'.'.join(path)}`", default(path), allowed(one), one["description"])
        for path, one in found
    ]
    lines: list[tuple[str, ...]]
    if found[0][0] == (name,):
        lines = [("default", "allowed"), ("---", "---"), rows[0][1:3]]
    else:
        lines = [("value", "default", "allowed", "meaning"), ("---",) * 4, *rows]
    table = "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
    return f"## {name}\n\n{resolved(node)['description']}\n\n{table}"


def generate() -> str:
    """Return the page."""
    sections = (
        section(name, node) for name, node in SCHEMA["properties"].items() if name in DEFAULTS
    )
    return f"""\
<!-- {NOTE} -->
# Values of the chart

What `helm install` takes with `--set` or `--values`. The chart refuses unknown and wrong values,
and names the field. [Operations](operations.md#install) says which of them matter first.

{chr(10).join(sections)}"""


def main() -> int:
    """Write or check the page. Return 1 if a check finds drift, else 0."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="write nothing, fail on drift")
    check: bool = parser.parse_args().check
    text = generate()
    if PAGE.exists() and PAGE.read_text(encoding="utf-8") == text:
        return 0
    if check:
        sys.stderr.write("docs/values.md differs from the chart: run python hack/genvalues.py\n")
        return 1
    PAGE.write_text(text, encoding="utf-8")
    print("wrote docs/values.md")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
