"""Define what Kubernetes' schemas add to JSON Schema: CEL rules, unions, frozen defaults.

In a model, rules stand beside validators that check the same in Python. So the API server and the
command line give one verdict. `tests/integration/kube` tries both on the same resources.
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
        path: the field in the value that is wrong, `.like.this`; the value itself when empty.
        reason: the kind of mistake, as the API server reports it.
    """

    expression: str
    message: str
    path: str = ""
    reason: Literal["FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired"] = (
        "FieldValueInvalid"
    )

    def written(self) -> JsonDict:
        """Give the rule as an entry of the schema."""
        entry: JsonDict = {"rule": self.expression, "message": self.message, "reason": self.reason}
        return entry | ({"fieldPath": self.path} if self.path else {})


def rules(*given: Rule) -> JsonDict:
    """Give the addition to a model's or a field's schema by which the API server checks rules."""
    return {RULES: [rule.written() for rule in given]}


def immutable(what: str, remedy: str, *others: Rule) -> JsonDict:
    """Give the addition to a required field's schema that forbids changes, beside `others`."""
    return rules(
        *others,
        Rule(
            "self == oldSelf",
            f"{what} cannot be changed: {remedy}",
            reason="FieldValueForbidden",
        ),
    )


def exactly_one(what: str, *names: str) -> Rule:
    """Give the rule that exactly one of some optional fields is required."""
    given = ", ".join(f"has(self.{name})" for name in names)
    return Rule(
        f"[{given}].filter(given, given).size() == 1",
        f"exactly one {what} is needed: {', '.join(names)}",
        path=f".{names[0]}",
    )


def one_of(what: str, *names: str) -> Callable[[dict[str, Any]], None]:
    """Give the change to a model's schema by which exactly one of some fields is required."""
    rule = exactly_one(what, *names)

    def change(schema: dict[str, Any]) -> None:
        schema["required"] = [name for name in schema.get("required", []) if name not in names]
        schema[RULES] = [*schema.get(RULES, []), rule.written()]

    return change


def frozen() -> JsonDict:
    """Give the addition to a field's schema by which the API server writes its default.

    The operator fills in all other defaults. They may change with its version, and are not part of
    the API.
    """
    return {FROZEN: True}


def following(**places: tuple[str, ...]) -> Callable[[dict[str, Any]], None]:
    """Give the change to a model's schema that places its own fields behind its base's.

    Args:
        places: by the name of a field of the base, the fields that follow it.
    """

    def change(schema: dict[str, Any]) -> None:
        fields = schema["properties"]
        own = {name: fields.pop(name) for names in places.values() for name in names}
        schema["properties"] = {
            name: {**fields, **own}[name]
            for before in fields
            for name in (before, *places.get(before, ()))
        }

    return change
