"""Define the fields of kinds that write or read archives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Final, Literal

from pydantic import Field, ValidationInfo, ValidatorFunctionWrapHandler, field_validator

from sluice.api.fields.common import ApiModel, InStore, NameInStore, StoreRef
from sluice.api.rules import Rule, rules

if TYPE_CHECKING:
    from pydantic.config import JsonDict

DEFAULT_MAX_EVENTS: Final = 1_000_000

FORMATS: Final = (
    "How events are kept: the bytes of segments as they are, which is the fastest; a table with a "
    "row for each event; or one object for each."
)

_NO_EVENTS = "maxEvents goes with format: EventObjects: remove it, or choose that format"

FormatName = Literal["Segments", "Parquet", "EventObjects"]
"""How an archive holds events."""

MaxEvents = Annotated[
    Annotated[int, Field(ge=1, le=1_000_000_000, strict=True)] | None,
    Field(
        description="With EventObjects: a run that would make more objects than this is refused; "
        "1000000 when left out.",
    ),
]

MAX_EVENTS_RULE: Final = Rule(
    "!has(self.maxEvents) || (has(self.format) && self.format == 'EventObjects')",
    _NO_EVENTS,
    path=".maxEvents",
    reason="FieldValueForbidden",
)
"""The rule of a model with the fields format and maxEvents."""


def guards_objects(most: int | None, info: ValidationInfo) -> int | None:
    """Refuse maxEvents with another format than EventObjects, as MAX_EVENTS_RULE does.

    A validator of the field max_events, which has to follow the field format.
    """
    if most is not None and info.data.get("format", "EventObjects") != "EventObjects":
        raise ValueError(_NO_EVENTS)
    return most


class InArchives(InStore):
    """A place in a StreamStore of archives."""

    @property
    def holds_archives(self) -> bool:
        """Whether the StreamStore must hold archives: always."""
        return True


class OrArchive(ApiModel):
    """A place in a store of live streams, or archives instead; all other fields are empty then.

    Attributes:
        needed: the message when a required field is missing and no archive is given.
        in_place: the message when another field is given beside an archive.
    """

    needed: ClassVar[str]
    in_place: ClassVar[str]

    archive: InArchives | None = None
    store_ref: StoreRef | None = Field(default=None, validate_default=True)
    scope: NameInStore = Field(default="", validate_default=True)

    @field_validator("store_ref", "scope", "stream", mode="wrap", check_fields=False)
    @classmethod
    def _one_of_both(
        cls, value: object, read: ValidatorFunctionWrapHandler, info: ValidationInfo
    ) -> object:
        missing = value is None or value == ""
        if info.data.get("archive") is not None:
            if not missing:
                raise ValueError(cls.in_place)
            return value
        if missing and "archive" in info.data:
            raise ValueError(cls.needed)
        return value if missing else read(value)

    @property
    def ref(self) -> StoreRef:
        """The reference to the StreamStore. A valid place has one."""
        ref = self.store_ref if self.archive is None else self.archive.store_ref
        assert ref is not None  # noqa: S101 - for the type checker: the validators saw to it
        return ref

    @property
    def store(self) -> str:
        """The name of the StreamStore, with its namespace if that is given."""
        return self.ref.title

    @property
    def store_field(self) -> str:
        """The path of the field that names the StreamStore, relative to this one."""
        return "storeRef.name" if self.archive is None else "archive.storeRef.name"

    @property
    def holds_archives(self) -> bool:
        """Whether the StreamStore must hold archives."""
        return self.archive is not None


def or_archive(
    *fields: str,
    needed: str,
    in_place: str,
    others: tuple[str, ...] = (),
    more: tuple[Rule, ...] = (),
) -> JsonDict:
    """Return the rules of an OrArchive.

    Args:
        fields: the fields that are required without an archive, and refused with one.
        needed: see OrArchive.
        in_place: see OrArchive.
        others: optional fields, also refused with an archive.
        more: further rules of the model.
    """
    return rules(
        *(
            Rule(
                f"has(self.archive) || has(self.{name})",
                needed,
                path=f".{name}",
                reason="FieldValueRequired",
            )
            for name in fields
        ),
        *(
            Rule(
                f"!has(self.archive) || !has(self.{name})",
                in_place,
                path=f".{name}",
                reason="FieldValueForbidden",
            )
            for name in (*fields, *others)
        ),
        *more,
    )
