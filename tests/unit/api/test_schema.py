from collections.abc import Iterator
from typing import Annotated, Any

import pytest
import yaml
from pydantic import Field, create_model

from sluice.api.fields.common import ApiModel, Resource
from sluice.api.kinds.streamquery import MOST_SQL
from sluice.api.registry import KINDS, KindSpec, Lifecycle, PrinterColumn
from sluice.api.rules import RULES
from sluice.api.schema.schema import definition, structural
from sluice.api.schema.structural import fields
from sluice.api.status.common import ResourceStatus

MOST_BYTES = 100_000


def kind_of(spec: type[ApiModel]) -> KindSpec:
    """Return a kind with this spec."""
    model = create_model("Thing", __base__=Resource, __doc__="A thing.", spec=(spec, ...))
    return KindSpec(
        model, ResourceStatus, "things", "th", Lifecycle.FINITE, "none", columns=(), conditions={}
    )


def fields_of(kind: KindSpec) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the fields of a kind's spec and status, with their paths."""
    for part in ("spec", "status"):
        yield from fields(structural(kind)["properties"][part], part)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_field_is_described(kind: KindSpec) -> None:
    """Each description ends with a full stop; `kubectl explain` shows it."""
    for path, field in fields_of(kind):
        assert field["description"].strip().endswith("."), path


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_field_has_bounds(kind: KindSpec) -> None:
    """Texts, numbers and lists are bounded, so that the API server can bound the rules' cost."""
    for path, field in fields_of(kind):
        match field.get("type"):
            case "integer":
                assert field["minimum"] < field["maximum"], path
                assert field["format"] == "int64", path
            case "array":
                assert field["maxItems"] <= 256, path
                assert field["x-kubernetes-list-type"] in {"map", "atomic", "set"}, path
            case "object":
                assert field.get("properties") or field["maxProperties"] <= 64, path
            case "boolean":
                pass
            case _:
                assert "enum" in field or field["maxLength"] <= MOST_SQL, path


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_definition_is_what_kubernetes_takes(kind: KindSpec) -> None:
    """The definition has no keyword that Kubernetes refuses, and keeps no unknown fields."""
    text = yaml.safe_dump(definition(kind))
    for refused in (
        "$ref",
        "anyOf",
        "oneOf",
        "const:",
        "preserve-unknown",
        "additionalProperties: true",
    ):
        assert refused not in text
    assert len(text) < MOST_BYTES


def test_only_what_must_be_frozen_has_a_default() -> None:
    """Only these fields have a default in the schema.

    The operator sets all others, so they may change.
    """
    found = {
        (kind.name, path): field["default"]
        for kind in KINDS
        for path, field in fields(structural(kind))
        if "default" in field
    }
    assert found == {
        ("StreamCopy", "spec.target.onExists"): "Fail",
        ("StreamCopy", "spec.target.scopePolicy"): "MustExist",
        ("StreamCopy", "spec.target.sealWhenDone"): False,
        ("StreamCopy", "spec.mode"): "Snapshot",
        ("ScopeCopy", "spec.mode"): "Snapshot",
        ("StreamCopy", "spec.onTruncation"): "Fail",
        ("StreamCopy", "spec.sourceOnComplete"): "Retain",
        ("StreamCopy", "status"): {"observedGeneration": -1},
        ("ScopeCopy", "spec.target.archive.format"): "Segments",
        ("ScopeCopy", "spec.target.scopePolicy"): "MustExist",
        ("ScopeCopy", "spec.streams.includeEphemeral"): False,
        ("ScopeCopy", "spec.onExists"): "Fail",
        ("ScopeCopy", "spec.onTruncation"): "Fail",
        ("ScopeCopy", "spec.sourceOnComplete"): "Retain",
        ("ScopeCopy", "status"): {"observedGeneration": -1},
        ("StreamArchive", "spec.format"): "Segments",
        ("StreamArchive", "spec.onDelete"): "Retain",
        ("StreamArchive", "spec.onTruncation"): "Fail",
        ("StreamArchive", "status"): {"observedGeneration": -1},
        ("StreamStore", "status"): {"observedGeneration": -1},
        ("EphemeralStream", "status"): {"observedGeneration": -1},
        ("StreamQuery", "status"): {"observedGeneration": -1},
    }


def test_conditions_are_merged_by_type() -> None:
    """Kubernetes merges the list, so writers of different conditions keep each other's entries."""
    for kind in KINDS:
        conditions = structural(kind)["properties"]["status"]["properties"]["conditions"]
        assert conditions["x-kubernetes-list-type"] == "map"
        assert conditions["x-kubernetes-list-map-keys"] == ["type"]


def test_every_rule_says_what_to_do() -> None:
    """Each rule has a message; without it the API server shows the expression to the user."""
    for kind in KINDS:
        schema = structural(kind)
        for _, field in [("", schema), *fields(schema)]:
            for rule in field.get(RULES, []):
                assert len(rule["message"]) > 20
                assert rule["reason"].startswith("FieldValue")


def test_a_union_is_a_rule() -> None:
    """No backend is required by itself; the rule demands exactly one of them."""
    spec = structural(KINDS[0])["properties"]["spec"]
    assert "required" not in spec
    one_of_three = "[has(self.pravega), has(self.s3), has(self.volume)]"
    assert spec[RULES][0]["rule"] == f"{one_of_three}.filter(given, given).size() == 1"


def test_a_wide_column_has_a_lower_priority() -> None:
    """A column has no priority by default; a wide one has priority 1."""
    assert "priority" not in PrinterColumn("A", ".a").written()
    assert PrinterColumn("A", ".a", wide=True).written()["priority"] == 1


class NoDescription(ApiModel):
    """A spec."""

    field: bool


class NoLength(ApiModel):
    """A spec."""

    field: str = Field(description="Text.")


class NoMaximum(ApiModel):
    """A spec."""

    field: Annotated[int, Field(ge=0)] | None = Field(default=None, description="A number.")


class NoMaxItems(ApiModel):
    """A spec."""

    field: list[bool] = Field(description="A list.")


class Fraction(ApiModel):
    """A spec."""

    field: float = Field(ge=0, le=1, description="A fraction.")


class TwoTypes(ApiModel):
    """A spec."""

    field: int | str = Field(description="A number or a text.")


class Unchecked(ApiModel):
    """A spec."""

    field: int = Field(multiple_of=2, ge=0, le=10, description="An even number.")


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (NoDescription, "there is no description"),
        (NoLength, "there is no maxLength"),
        (NoMaximum, "there is no maximum"),
        (NoMaxItems, "there is no maxItems"),
        (Fraction, "no fields of type number"),
        (TwoTypes, "one type, not 2"),
        (Unchecked, "no place for multipleOf"),
    ],
)
def test_a_model_that_kubernetes_cannot_check_is_refused(spec: type[ApiModel], said: str) -> None:
    """The generator raises an error with the field's path.

    It demands a description, bounds and one type that it knows.
    """
    with pytest.raises(ValueError, match=rf"spec\.field: .*{said}"):
        structural(kind_of(spec))
