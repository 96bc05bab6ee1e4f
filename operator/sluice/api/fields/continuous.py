"""Define the fields of a copy that follows its source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from sluice.api.fields.common import ApiModel, only
from sluice.api.rules import Rule, rules
from sluice.api.scalars.instant import Instant
from sluice.api.scalars.quantities import Bytes

if TYPE_CHECKING:
    from typing import Self

MOST_GROUPS: Final = 32
LAG_OBJECTIVE_SECONDS: Final = 30

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

ScopeStopWhen = Annotated[
    StopWhenSpec | None,
    Field(
        description="When the copy ends, for all streams at once: nothing came in any of them for "
        "idleSeconds, or it is time. Without it, the scope is followed until cutover asks for the "
        "end, or all of its streams are sealed. May be changed. Only with mode: Continuous.",
    ),
]

ScopeCutover = Annotated[
    Cutover,
    Field(
        description="How the copy is ended for readers and writers to move to the targets. Drain "
        "ends each stream once nothing came in it for 5 s, and its target has all: stop the "
        "writers first. SealAndDrain seals each stream, also those that the scope has got by then, "
        "and copies the rest; a seal cannot be undone. None goes on following. May be changed, but "
        "not from SealAndDrain once a source is sealed. Only with mode: Continuous.",
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
