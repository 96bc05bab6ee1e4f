"""Define which fields of a spec go together where a copy follows its source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pydantic import ValidationError
from pydantic_core import InitErrorDetails

from sluice.api.rules import Rule

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sluice.api.fields.common import ApiModel


class _Refusal(NamedTuple):
    """What does not go together in a spec.

    Attributes:
        path: the field that is wrong.
        holds: in CEL, whether it is wrong.
        found: the same of a spec as the user wrote it.
        message: what is wrong and what to do.
    """

    path: tuple[str, ...]
    holds: str
    found: Callable[[Mapping[str, Any]], bool]
    message: str

    def rule(self, follows: str) -> Rule:
        """Give the rule by which the API server refuses it, where `follows` holds."""
        return Rule(
            f"!({follows}) || !({self.holds})", self.message, path="." + ".".join(self.path)
        )


_DEADLINE: Final = _Refusal(
    ("activeDeadlineSeconds",),
    "has(self.activeDeadlineSeconds) && !has(self.stopWhen)",
    lambda spec: "activeDeadlineSeconds" in spec and "stopWhen" not in spec,
    "mode: Continuous has no end by itself that a deadline could be for: give stopWhen, or "
    "remove activeDeadlineSeconds",
)

_REFUSED_OF_STREAMS: Final = (
    _Refusal(
        ("sources",),
        "has(self.sources)",
        lambda spec: "sources" in spec,
        "mode: Continuous follows one stream: give source, and make a copy for each other stream",
    ),
    _Refusal(
        ("source", "archive"),
        "has(self.source) && has(self.source.archive)",
        lambda spec: "archive" in spec.get("source", ()),
        "mode: Continuous follows a stream, not an archive: name the stream, or remove mode",
    ),
    _Refusal(
        ("source", "ranges"),
        "has(self.source) && has(self.source.ranges) && size(self.source.ranges) > 0",
        lambda spec: bool(spec.get("source", {}).get("ranges")),
        "mode: Continuous follows a whole stream: remove ranges, or mode",
    ),
    _Refusal(
        ("source", "stream"),
        "has(self.source) && has(self.source.stream) && self.source.stream.startsWith('_')",
        lambda spec: spec.get("source", {}).get("stream", "").startswith("_"),
        "mode: Continuous does not follow the store's own streams, whose names begin with _: name "
        "another stream, or remove mode",
    ),
    _Refusal(
        ("target", "onExists"),
        "has(self.target.onExists) && self.target.onExists != 'Fail'",
        lambda spec: spec["target"].get("onExists", "Fail") != "Fail",
        "mode: Continuous makes its target: take onExists: Fail and the name of a new stream",
    ),
    _Refusal(
        ("sourceOnComplete",),
        "has(self.sourceOnComplete) && self.sourceOnComplete != 'Retain'",
        lambda spec: spec.get("sourceOnComplete", "Retain") != "Retain",
        "mode: Continuous leaves its source, which readers still read to its end: take "
        "sourceOnComplete: Retain, and delete the stream once they have moved",
    ),
    _DEADLINE,
)
"""What a copy of a stream does not have that follows its source."""

_REFUSED_OF_SCOPES: Final = (
    _Refusal(
        ("source", "archive"),
        "has(self.source.archive)",
        lambda spec: "archive" in spec["source"],
        "mode: Continuous follows a scope, not archives: name the scope, or remove mode",
    ),
    _Refusal(
        ("target", "archive"),
        "has(self.target.archive)",
        lambda spec: "archive" in spec["target"],
        "mode: Continuous copies to a scope, not to archives: name a scope, or remove mode and "
        "archive the streams by a schedule",
    ),
    _Refusal(
        ("streams", "include"),
        "has(self.streams) && has(self.streams.include)"
        " && self.streams.include.exists(one, one.type != 'Tag' && one.value.startsWith('_'))",
        lambda spec: any(
            one["type"] != "Tag" and one["value"].startswith("_")
            for one in spec.get("streams", {}).get("include", ())
        ),
        "mode: Continuous does not follow the store's own streams, whose names begin with _: "
        "include no names that begin with _, or remove mode",
    ),
    _Refusal(
        ("stopWhen", "bytes"),
        "has(self.stopWhen) && has(self.stopWhen.bytes)",
        lambda spec: "bytes" in spec.get("stopWhen", ()),
        "bytes are those of one stream, and a scope has many: give idleSeconds or time, or follow "
        "the stream by a StreamCopy",
    ),
    _Refusal(
        ("onExists",),
        "has(self.onExists) && self.onExists == 'Append'",
        lambda spec: spec.get("onExists") == "Append",
        "mode: Continuous makes its targets: take onExists: Fail or Skip",
    ),
    _Refusal(
        ("failurePolicy",),
        "has(self.failurePolicy) && self.failurePolicy == 'Stop'",
        lambda spec: spec.get("failurePolicy") == "Stop",
        "mode: Continuous follows all other streams when one fails, and those that the scope gets "
        "later: take failurePolicy: Continue",
    ),
    _Refusal(
        ("sourceOnComplete",),
        "has(self.sourceOnComplete) && self.sourceOnComplete != 'Retain'",
        lambda spec: spec.get("sourceOnComplete", "Retain") != "Retain",
        "mode: Continuous leaves its sources, which readers still read to their ends: take "
        "sourceOnComplete: Retain, and delete the streams once they have moved",
    ),
    _DEADLINE,
)
"""What a copy of a scope does not have that follows its sources."""

_ONLY_CONTINUOUS: Final = (
    "{0} is of copies that follow their source: add mode: Continuous, or remove {0}"
)

_FOLLOWS: Final = "has(self.mode) && self.mode == 'Continuous'"


class Together(NamedTuple):
    """What goes together in the spec of a kind whose copies may follow their sources.

    Attributes:
        refused: what a copy does not have that follows its source.
        only: the fields that only a copy has that follows its source.
    """

    refused: tuple[_Refusal, ...]
    only: tuple[str, ...]

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules of the spec for the API server."""
        return (
            *(refusal.rule(_FOLLOWS) for refusal in self.refused),
            *(
                Rule(
                    f"({_FOLLOWS}) || !has(self.{name})",
                    _ONLY_CONTINUOUS.format(name),
                    path=f".{name}",
                    reason="FieldValueForbidden",
                )
                for name in self.only
            ),
        )

    def check(self, model: ApiModel, *, follows: bool) -> None:
        """Check that the fields of a spec go together, as `rules` do.

        Args:
            model: the spec, whose fields are valid by themselves.
            follows: whether the copy follows its source.

        Raises:
            ValidationError: some do not. It names these fields.
        """
        spec = model.model_dump(by_alias=True, exclude_unset=True, exclude_none=True)
        wrong = (
            [(one.path, one.message) for one in self.refused if one.found(spec)]
            if follows
            else [((name,), _ONLY_CONTINUOUS.format(name)) for name in self.only if name in spec]
        )
        if wrong:
            raise ValidationError.from_exception_data(
                type(model).__name__,
                [
                    InitErrorDetails(
                        type="value_error", loc=path, input=None, ctx={"error": ValueError(message)}
                    )
                    for path, message in wrong
                ],
            )


OF_STREAMS: Final = Together(
    _REFUSED_OF_STREAMS, ("stopWhen", "cutover", "readerGroups", "lagObjectiveSeconds")
)
OF_SCOPES: Final = Together(_REFUSED_OF_SCOPES, ("stopWhen", "cutover", "lagObjectiveSeconds"))

SEALED: Final = ("Sealed", "Done")
"""The states of `status.cutover` in which a source is sealed for good."""


def sealed_stays(what: str) -> Rule:
    """Return the rule of a whole resource that keeps the wish for a seal once it is fulfilled.

    Args:
        what: what is sealed, as the beginning of a sentence.
    """
    return Rule(
        "!has(oldSelf.spec.cutover) || oldSelf.spec.cutover != 'SealAndDrain'"
        " || !has(oldSelf.status) || !has(oldSelf.status.cutover)"
        " || !has(oldSelf.status.cutover.state)"
        f" || !(oldSelf.status.cutover.state in {list(SEALED)})"
        " || (has(self.spec.cutover) && self.spec.cutover == 'SealAndDrain')",
        f"{what} sealed, which cannot be undone: leave cutover: SealAndDrain, and make another "
        "copy for the way back",
        path=".spec.cutover",
        reason="FieldValueForbidden",
    )
