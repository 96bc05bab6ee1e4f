"""Convert a model's JSON Schema to the structural schema that Kubernetes requires.

The conversion fails on keywords that Kubernetes does not know. So either the API server checks all
that a model says, or the generator fails.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sluice.api.rules import FROZEN, RULES

if TYPE_CHECKING:
    from collections.abc import Iterator

Schema = dict[str, Any]

_TIME_LENGTH = 64
_KEPT: Final = (
    "description",
    "type",
    "format",
    "x-kubernetes-int-or-string",
    "enum",
    "pattern",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "minItems",
    "maxItems",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
    "default",
    "required",
    "properties",
    "items",
    "minProperties",
    "maxProperties",
    RULES,
)
"""Keywords that stay as they are, in the order in which they are written."""

_DROPPED: Final = ("$defs", "title", "additionalProperties", "propertyNames", FROZEN)
"""Keywords that are left out. Unknown fields need none: Kubernetes prunes them, `kubectl` refuses
them.
"""


def converted(node: Schema, path: str, models: Schema, *, operator_defaults: bool) -> Schema:
    """Convert one node of a model's schema, and all nodes below it."""
    node = _resolved(node, path, models)
    unknown = node.keys() - {*_KEPT, *_DROPPED}
    if unknown:
        raise ValueError(f"{path}: Kubernetes has no place for {', '.join(sorted(unknown))}")
    result = {key: value for key, value in node.items() if key in _KEPT}
    default = result.pop("default", None)
    if node.get(FROZEN) or (operator_defaults and isinstance(default, str | int) and default != ""):
        result["default"] = default
    match node.get("type"):
        case "object" if "properties" not in node:
            result["additionalProperties"] = converted(
                node["additionalProperties"], f"{path}[]", models, operator_defaults=False
            )
        case "object":
            result["properties"] = {
                name: converted(
                    value, f"{path}.{name}", models, operator_defaults=operator_defaults
                )
                for name, value in node["properties"].items()
            }
            if not result.get("required"):
                result.pop("required", None)
        case "array":
            result["items"] = converted(
                node["items"], f"{path}[]", models, operator_defaults=operator_defaults
            )
            result.setdefault("x-kubernetes-list-type", "atomic")
        case "integer":
            result["format"] = "int64"
        case "string" if node.get("format") == "date-time":
            result["maxLength"] = _TIME_LENGTH
    _check(result, path)
    return {key: result[key] for key in (*_KEPT, "additionalProperties") if key in result}


def _resolved(node: Schema, path: str, models: Schema) -> Schema:
    """Replace references, null and constants in a node; structural schemas do not have them."""
    node = dict(node)
    choices = [choice for choice in node.pop("anyOf", []) if choice != {"type": "null"}]
    if len(choices) > 1:
        raise ValueError(f"{path}: a field has one type, not {len(choices)}")
    inner: Schema = choices[0] if choices else {}
    if "$ref" in node:
        inner = models[node.pop("$ref").rpartition("/")[2]]
    if inner:
        inner = _resolved(inner, path, models)
        both = [*inner.get(RULES, []), *node.get(RULES, [])]
        node = inner | node | ({RULES: both} if both else {})
    if "const" in node:
        node["enum"] = [node.pop("const")]
    return node


def _check(node: Schema, path: str) -> None:
    """Refuse a node that has no description or no bounds.

    Raises:
        ValueError: the description or a bound is missing, or the API has no such type.
    """
    kind = node.get("type", "quantity")
    wanted = {"description"}
    if kind == "integer":
        wanted |= {"minimum", "maximum"}
    elif kind == "array":
        wanted |= {"maxItems"}
    elif kind == "quantity" or (kind == "string" and "enum" not in node):
        wanted |= {"maxLength"}
    elif "additionalProperties" in node:
        wanted |= {"maxProperties"}
    elif kind not in {"object", "boolean", "string"}:
        raise ValueError(f"{path}: the API has no fields of type {kind}")
    if path.endswith("[]"):
        wanted.discard("description")
    missing = wanted - node.keys()
    if missing:
        raise ValueError(f"{path}: there is no {', '.join(sorted(missing))}")


def fields(schema: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    """Yield the path, as in `a.b[].c`, and the schema of each field below a root, depth first."""
    for name, value in schema.get("properties", {}).items():
        here = f"{path}.{name}" if path else name
        if "items" in value:
            yield f"{here}[]", value
            yield from fields(value["items"], f"{here}[]")
        else:
            yield here, value
            yield from fields(value, here)
