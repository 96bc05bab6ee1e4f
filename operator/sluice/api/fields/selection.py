"""Define which streams of a scope a ScopeCopy copies, and under which names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import ConfigDict, Field, ValidationInfo, field_validator

from sluice.api.fields.common import ApiModel
from sluice.api.rules import Rule, frozen, rules

if TYPE_CHECKING:
    from pydantic.config import JsonDict

MOST_SELECTORS: Final = 256

_NAME = "[A-Za-z0-9._-]+"
_NO_NAME = "streams have letters, digits, '.', '_' and '-' in their names: correct value, or type"

_Value = Annotated[str, Field(min_length=1, max_length=249)]
_Affix = Annotated[str, Field(max_length=249, pattern=r"^[A-Za-z0-9._-]*$")]


class StreamSelector(ApiModel):
    """A selection of streams, by name, by the beginning of the name, or by tag."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            Rule(
                f"self.type == 'Tag' || self.value.matches('^{_NAME}$')",
                _NO_NAME,
                path=".value",
            )
        )
    )

    type: Literal["Exact", "Prefix", "Tag"] = Field(
        description="What value is: the name of a stream, the beginning of names, or a tag that "
        "streams have in their store."
    )
    value: _Value = Field(description="The name, the beginning of names, or the tag.")

    @field_validator("value", mode="after")
    @classmethod
    def _is_a_name(cls, value: str, info: ValidationInfo) -> str:
        if info.data.get("type") != "Tag" and not re.fullmatch(_NAME, value):
            raise ValueError(_NO_NAME)
        return value


_Selectors = Annotated[tuple[StreamSelector, ...], Field(max_length=MOST_SELECTORS)]
ATOMIC: Final[JsonDict] = {"x-kubernetes-list-type": "atomic"}
"""The part of a schema that says that a list is replaced as a whole."""


class StreamsSpec(ApiModel):
    """Which streams of the scope are copied."""

    include: _Selectors = Field(
        default=(),
        description="Streams to copy; all when left out. Streams whose names begin with _ are "
        "internal to the store. They are copied only if a selector of type Exact or Prefix has a "
        "value that begins with _, too.",
        json_schema_extra=ATOMIC,
    )
    exclude: _Selectors = Field(
        default=(),
        description="Streams that are not copied, even if include selects them.",
        json_schema_extra=ATOMIC,
    )
    include_ephemeral: bool = Field(
        default=False,
        strict=True,
        description="Whether streams of EphemeralStreams are copied as well. The copies are not "
        "deleted with their sources.",
        json_schema_extra=frozen(),
    )


class RenameSpec(ApiModel):
    """A rule that gives the targets of some streams other names."""

    from_prefix: _Affix = Field(
        description="The beginning of the streams' names. With '' the rule is for all streams."
    )
    to_prefix: _Affix = Field(
        description="The beginning of the targets' names, in place of fromPrefix."
    )
