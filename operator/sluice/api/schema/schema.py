"""Generate CustomResourceDefinitions from the models."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from sluice.api.fields.common import GROUP, VERSION
from sluice.api.rules import RULES, Rule
from sluice.api.schema.structural import Schema, converted

if TYPE_CHECKING:
    from sluice.api.registry import KindSpec

_MOST_NAME = 63
_NAME_RULES = (
    Rule(
        f"self.metadata.name.size() <= {_MOST_NAME}",
        f"a name has at most {_MOST_NAME} characters, since other objects are named after it",
        path=".metadata.name",
    ),
    Rule(
        "!self.metadata.name.contains('.')",
        "a name has lower-case letters, digits and -, but no dots",
        path=".metadata.name",
    ),
)


def definition(kind: KindSpec) -> Schema:
    """Return the CustomResourceDefinition of a kind."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {
                "kind": kind.name,
                "listKind": f"{kind.name}List",
                "plural": kind.plural,
                "singular": kind.name.lower(),
                "shortNames": [kind.short],
                "categories": ["streams"],
            },
            "scope": "Namespaced",
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": [column.written() for column in kind.columns],
                    "schema": {"openAPIV3Schema": structural(kind)},
                }
            ],
        },
    }


def structural(kind: KindSpec, *, operator_defaults: bool = False) -> Schema:
    """Return the schema of a kind: spec and status, with bounds everywhere.

    Args:
        kind: the kind.
        operator_defaults: add the defaults that the operator fills in when it reads a resource.
            They belong in the reference, not in the API server.

    Raises:
        ValueError: a model has a field without bounds, or with a constraint that Kubernetes
            cannot check.
    """
    convert = partial(converted, operator_defaults=operator_defaults)
    model = kind.model.model_json_schema()
    status = kind.status.model_json_schema()
    return {
        "type": "object",
        "description": model["description"],
        "required": ["spec"],
        "properties": {
            "apiVersion": {
                "type": "string",
                "description": f"The version of the API: {GROUP}/{VERSION}.",
            },
            "kind": {"type": "string", "description": f"The kind of resource: {kind.name}."},
            # The rules on the name need it here: their paths must exist in the schema.
            "metadata": {"type": "object", "properties": {"name": {"type": "string"}}},
            "spec": convert(model["properties"]["spec"], "spec", model["$defs"]),
            # kstatus takes an empty status for success; -1 tells it that nothing was reported yet.
            "status": convert(status, "status", status["$defs"])
            | {"default": {"observedGeneration": -1}},
        },
        RULES: [rule.written() for rule in (*_NAME_RULES, *kind.rules)],
    }
