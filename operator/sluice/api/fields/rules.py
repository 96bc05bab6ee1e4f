"""What Kubernetes' schemas say beyond JSON Schema: rules in CEL, unions, frozen defaults.

A model carries these beside the validators that say the same in Python, so that the API server and
the command line give one verdict. `tests/integration/kube` tries both on the same resources.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic.config import JsonDict

RULES: Final = "x-kubernetes-validations"
FROZEN: Final = "x-sluice-frozen"


@dataclass(frozen=True, slots=True)
class Rule:
    """A condition that the API server checks.

    Attributes:
        expression: in CEL; `self` is the value, `oldSelf` the one before an update.
        message: what is wrong and what to do.
        path: where in the value the mistake is, `.like.this`; the value itself when empty.
        reason: the kind of mistake that clients are told.
    """

    expression: str
    message: str
    path: str = ""
    reason: Literal["FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired"] = (
        "FieldValueInvalid"
    )

    def written(self) -> JsonDict:
        """As an entry of the schema."""
        entry: JsonDict = {"rule": self.expression, "message": self.message, "reason": self.reason}
        return entry | ({"fieldPath": self.path} if self.path else {})


def rules(*given: Rule) -> JsonDict:
    """The addition to a model's or a field's schema that makes the API server check rules."""
    return {RULES: [rule.written() for rule in given]}


def immutable(what: str, remedy: str, *others: Rule) -> JsonDict:
    """The addition to a required field's schema that keeps it as it was made, beside `others`."""
    return rules(
        *others,
        Rule(
            "self == oldSelf",
            f"{what} cannot be changed: {remedy}",
            reason="FieldValueForbidden",
        ),
    )


def exactly_one(what: str, *names: str) -> Rule:
    """The rule that exactly one of some optional fields has to be given."""
    given = ", ".join(f"has(self.{name})" for name in names)
    return Rule(
        f"[{given}].filter(given, given).size() == 1",
        f"exactly one {what} is needed: {', '.join(names)}",
        path=f".{names[0]}",
    )


def one_of(what: str, *names: str) -> Callable[[dict[str, Any]], None]:
    """The change to a model's schema by which exactly one of some fields has to be given."""
    rule = exactly_one(what, *names)

    def change(schema: dict[str, Any]) -> None:
        schema["required"] = [name for name in schema.get("required", []) if name not in names]
        schema[RULES] = [*schema.get(RULES, []), rule.written()]

    return change


def frozen() -> JsonDict:
    """The addition to a field's schema by which its default is written into new resources.

    All other defaults are the operator's: they may change with it, and are no part of the API.
    """
    return {FROZEN: True}


def following(**places: tuple[str, ...]) -> Callable[[dict[str, Any]], None]:
    """The change to a model's schema by which fields of its own stand behind some of its base."""

    def change(schema: dict[str, Any]) -> None:
        fields = schema["properties"]
        own = {name: fields.pop(name) for names in places.values() for name in names}
        schema["properties"] = {
            name: {**fields, **own}[name]
            for before in fields
            for name in (before, *places.get(before, ()))
        }

    return change
