"""Generate the CustomResourceDefinitions and the reference of their fields from the models.

python hack/gencrds.py           write crds/ and docs/reference.md
python hack/gencrds.py --check   fail if the files are out of date
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from sluice.api.fields.common import GROUP, VERSION
from sluice.api.registry import KINDS, KindSpec
from sluice.api.rules import RULES
from sluice.api.schema.schema import definition, structural
from sluice.api.schema.structural import Schema, fields

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
PIPE = r"\|"
NOTE = "Made by hack/gencrds.py from operator/sluice/api: change the models, not this file."


class Dumper(yaml.SafeDumper):
    """A dumper that repeats equal values instead of writing anchors and aliases."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - overrides
        """Return True, so that no value becomes an alias."""
        return True


def generate() -> dict[Path, str]:
    """Return the text of each generated file by its path below the root."""
    files = {
        Path("crds") / f"{kind.plural}.yaml": f"# {NOTE}\n"
        + yaml.dump(definition(kind), Dumper=Dumper, sort_keys=False, width=100)
        for kind in KINDS
    }
    return files | {Path("docs/reference.md"): introduction() + "".join(map(chapter, KINDS))}


def introduction() -> str:
    """Return the introduction of the reference."""
    frozen = "".join(
        f"- {kind.name}: {', '.join(_frozen(kind))}\n" for kind in KINDS if _frozen(kind)
    )
    return f"""<!-- {NOTE} -->
# Reference of the resources

Group `{GROUP}`, version `{VERSION}`, namespaced, category `streams` (`kubectl get streams`). The
same texts are in `kubectl explain`. Fields that are not listed are refused.

Of the defaults in a spec, the API server writes only these into a resource:

{frozen}
The others are filled in by the operator and by `sluice run` when they read it.
"""


def _frozen(kind: KindSpec) -> list[str]:
    """Return a kind's fields whose defaults the API server writes, each with its default."""
    spec = structural(kind)["properties"]["spec"]
    return [
        f"`{path}: {yaml.safe_dump(field['default']).splitlines()[0]}`"
        for path, field in fields(spec, "spec")
        if "default" in field
    ]


def chapter(kind: KindSpec) -> str:
    """Return a kind's chapter of the reference."""
    schema = structural(kind, operator_defaults=True)
    conditions = "".join(f"| `{name}` | {says} |\n" for name, says in kind.conditions.items())
    rules = "".join(f"- `{path}`: {message}\n" for path, message in _rules(schema))
    spec, status = ("".join(_rows(part, schema["properties"][part])) for part in ("spec", "status"))
    return f"""
## {kind.name}

{schema["description"]} `kubectl get {kind.short}` for short.

### {kind.name}: spec

| field | type | bounds | default | meaning |
|---|---|---|---|---|
{spec}
The API server checks these as well, and says so when they do not hold:

{rules}
### {kind.name}: status

| field | type | bounds | default | meaning |
|---|---|---|---|---|
{status}
### {kind.name}: conditions

| type | while it is True |
|---|---|
{conditions}"""


def _rows(root: str, schema: Schema) -> Iterator[str]:
    """Yield a table row for each field below a root."""
    required: dict[str, list[str]] = {root: schema.get("required", [])}
    for path, field in fields(schema, root):
        parent, _, name = path.removesuffix("[]").rpartition(".")
        required[path] = field.get("items", field).get("required", [])
        default = f"`{json.dumps(field['default'])}`" if "default" in field else ""
        cells = (
            f"`{path}`",
            _type(field),
            _bounds(field),
            "required" if name in required[parent] else default,
            field["description"],
        )
        yield f"| {' | '.join(cell.replace('|', PIPE) for cell in cells)} |\n"


def _type(field: Schema) -> str:
    """Return a field's type in one word."""
    if "x-kubernetes-int-or-string" in field:
        return "quantity"
    if field.get("format") == "date-time":
        return "time"
    return "list" if field["type"] == "array" else str(field["type"])


def _bounds(field: Schema) -> str:
    """Return the allowed values of a field."""
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if "x-kubernetes-int-or-string" in field:
        return str(field[RULES][0]["message"]).removeprefix("write ")
    if "minimum" in field:
        most = field["maximum"]
        return f"{field['minimum']} to {'2^62' if most == 1 << 62 else most}"
    if "maxItems" in field:
        return f"at most {field['maxItems']}"
    if "maxLength" in field and "format" not in field:
        length = f"{field.get('minLength', 0)} to {field['maxLength']} characters"
        return f"{length}, `{field['pattern']}`" if "pattern" in field else length
    return ""


def _rules(schema: Schema) -> Iterator[tuple[str, str]]:
    """Yield the path and the message of each rule, except those of quantities (in their rows)."""
    for path, field in [("", schema), *fields(schema)]:
        if "x-kubernetes-int-or-string" not in field:
            for rule in field.get(RULES, []):
                yield (path + rule.get("fieldPath", "")).lstrip("."), rule["message"]


def main() -> int:
    """Write or check the files. Return 1 if a check finds drift, else 0."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="write nothing, fail on drift")
    check: bool = parser.parse_args().check
    drifted = {
        path: text
        for path, text in generate().items()
        if not (ROOT / path).exists() or (ROOT / path).read_text(encoding="utf-8") != text
    }
    if check:
        for path in drifted:
            print(f"{path} differs from the models: run python hack/gencrds.py", file=sys.stderr)
        return 1 if drifted else 0
    for path, text in drifted.items():
        (ROOT / path).parent.mkdir(exist_ok=True)
        (ROOT / path).write_text(text, encoding="utf-8")
        print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
