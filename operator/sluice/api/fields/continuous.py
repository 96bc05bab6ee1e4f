"""Define the fields of a copy that follows its source, and what does not go together with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple

from pydantic import AfterValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import InitErrorDetails

from sluice.api.fields.common import ApiModel, only
from sluice.api.fields.instant import Instant
from sluice.api.fields.quantities import Bytes
from sluice.api.fields.rules import Rule, rules

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Self

MOST_GROUPS: Final = 32
LAG_OBJECTIVE_SECONDS: Final = 30

SEALED: Final = ("Sealed", "Done")
"""The states of `status.cutover` in which the source is sealed for good."""

_NEVER: Final = "stopWhen says when a copy ends: give idleSeconds, bytes or time, or remove it"
_ONE_EACH: Final = (
    "each reader group is named once, and each makes a group of its own: give another name or as"
)
_GROUP: Final = "^[A-Za-z0-9.-]+$"
_NO_GROUP: Final = (
    "a reader group is given by its name alone, of letters, digits, . and -, and is looked for in "
    "the scope of its stream: remove the scope"
)

GroupName = Annotated[
    str,
    Field(
        min_length=1,
        max_length=249,
        json_schema_extra=rules(Rule(f"self.matches('{_GROUP}')", _NO_GROUP)),
    ),
    only(_GROUP, _NO_GROUP),
]
"""The name of a reader group in the scope of the stream that it reads."""


class StopWhenSpec(ApiModel):
    """When a copy that follows its source ends: the first of these conditions to hold counts.

    It ends at the position that it has then, once all bytes before that are compared.
    """

    model_config = ConfigDict(
        json_schema_extra=rules(
            Rule("has(self.idleSeconds) || has(self.bytes) || has(self.time)", _NEVER)
        )
    )

    idle_seconds: Annotated[int, Field(ge=1, le=31_536_000, strict=True)] | None = Field(
        default=None,
        description="End once nothing came from the source for so many seconds, and all that it "
        "has is in the target.",
    )
    bytes: Annotated[int, Bytes("1", "1000000Ti")] | None = Field(
        default=None,
        description="End once so many bytes of the source are in the target, with those that it "
        "had when the copy began. 1 to 1000000Ti.",
    )
    time: Instant | None = Field(
        default=None,
        description="End at this time, such as 2026-12-01T00:00:00Z. A new copy is refused if it "
        "is over.",
    )

    @model_validator(mode="after")
    def _some_end(self) -> Self:
        if self.idle_seconds is None and self.bytes is None and self.time is None:
            raise ValueError(_NEVER)
        return self


class ReaderGroupSpec(ApiModel):
    """A reader group of the source that goes on in the target."""

    name: GroupName = Field(description="The group's name in the source's scope.")
    as_: GroupName | None = Field(
        default=None,
        alias="as",
        description="The name of the group to make in the target's scope; the same name when left "
        "out.",
    )

    @property
    def made(self) -> str:
        """The name of the group in the target's scope."""
        return self.as_ or self.name


def _one_each(groups: tuple[ReaderGroupSpec, ...]) -> tuple[ReaderGroupSpec, ...]:
    """Return reader groups, or raise ValueError if two have the same name, here or there."""
    names, made = {one.name for one in groups}, {one.made for one in groups}
    if not len(names) == len(made) == len(groups):
        raise ValueError(_ONE_EACH)
    return groups


Mode = Literal["Snapshot", "Continuous"]
Cutover = Literal["None", "Drain", "SealAndDrain"]

StopWhen = Annotated[
    StopWhenSpec | None,
    Field(
        description="When the copy ends. Without it, it follows its source until cutover asks for "
        "the end, or the source is sealed. May be changed. Only with mode: Continuous.",
    ),
]

CutoverField = Annotated[
    Cutover,
    Field(
        description="How the copy is ended for readers and writers to move to the target. Drain "
        "ends it once the writers have stopped: nothing came for 5 s, and the target has all. "
        "SealAndDrain seals the source, so that no writer can add to it, and then copies the rest; "
        "a seal cannot be undone. None goes on following. May be changed, but not from "
        "SealAndDrain once the source is sealed. Only with mode: Continuous.",
    ),
]

ReaderGroups = Annotated[
    tuple[ReaderGroupSpec, ...],
    Field(
        max_length=MOST_GROUPS,
        description="Reader groups of the source that are made in the target when the copy ends, "
        "so that their readers go on there where they stopped. May be changed. Only with mode: "
        "Continuous.",
        json_schema_extra={
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            **rules(
                Rule(
                    "self.all(one, self.exists_one(other, (has(other.__as__) ? other.__as__ : "
                    "other.name) == (has(one.__as__) ? one.__as__ : one.name)))",
                    _ONE_EACH,
                )
            ),
        },
    ),
    AfterValidator(_one_each),
]

LagObjective = Annotated[
    int,
    Field(
        ge=1,
        le=86_400,
        strict=True,
        description="The copy is Ready while the target is behind its source by at most so many "
        "seconds. May be changed. Only with mode: Continuous.",
    ),
]


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


_REFUSED: Final = (
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
    _Refusal(
        ("activeDeadlineSeconds",),
        "has(self.activeDeadlineSeconds) && !has(self.stopWhen)",
        lambda spec: "activeDeadlineSeconds" in spec and "stopWhen" not in spec,
        "mode: Continuous has no end by itself that a deadline could be for: give stopWhen, or "
        "remove activeDeadlineSeconds",
    ),
)
"""What a copy that follows its source does not have."""

_ONLY: Final = ("stopWhen", "cutover", "readerGroups", "lagObjectiveSeconds")
"""The fields that only a copy has that follows its source."""

_ONLY_CONTINUOUS: Final = (
    "{0} is of copies that follow their source: add mode: Continuous, or remove {0}"
)

_FOLLOWS: Final = "has(self.mode) && self.mode == 'Continuous'"

CONTINUOUS_RULES: Final = (
    *(refusal.rule(_FOLLOWS) for refusal in _REFUSED),
    *(
        Rule(
            f"({_FOLLOWS}) || !has(self.{name})",
            _ONLY_CONTINUOUS.format(name),
            path=f".{name}",
            reason="FieldValueForbidden",
        )
        for name in _ONLY
    ),
)
"""The rules of a spec that has these fields."""

SEALED_STAYS: Final = Rule(
    "!has(oldSelf.spec.cutover) || oldSelf.spec.cutover != 'SealAndDrain'"
    " || !has(oldSelf.status) || !has(oldSelf.status.cutover)"
    " || !has(oldSelf.status.cutover.state)"
    f" || !(oldSelf.status.cutover.state in {list(SEALED)})"
    " || (has(self.spec.cutover) && self.spec.cutover == 'SealAndDrain')",
    "the source is sealed, which cannot be undone: leave cutover: SealAndDrain, and make another "
    "copy for the way back",
    path=".spec.cutover",
    reason="FieldValueForbidden",
)
"""The rule of a whole resource that keeps the wish for a seal once it is fulfilled."""


def check_together(model: ApiModel, *, follows: bool) -> None:
    """Check that the fields of a spec go together, as `CONTINUOUS_RULES` do.

    Args:
        model: the spec, whose fields are valid by themselves.
        follows: whether the copy follows its source.

    Raises:
        ValidationError: some do not. It names these fields.
    """
    spec = model.model_dump(by_alias=True, exclude_unset=True, exclude_none=True)
    wrong = (
        [(one.path, one.message) for one in _REFUSED if one.found(spec)]
        if follows
        else [((name,), _ONLY_CONTINUOUS.format(name)) for name in _ONLY if name in spec]
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
