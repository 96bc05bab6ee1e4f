"""Define the options that choose a run of an archive."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import click
from pydantic import TypeAdapter, ValidationError

from sluice.api.scalars.instant import Instant

if TYPE_CHECKING:
    from datetime import datetime

_INSTANT: TypeAdapter[datetime] = TypeAdapter(Instant)


class Until(NamedTuple):
    """A point in time.

    Attributes:
        text: as the user wrote it.
        ms: ms since 1970.
    """

    text: str
    ms: int


def _until(_context: click.Context, _option: click.Parameter, text: str | None) -> Until | None:
    """Read the option --until."""
    if text is None:
        return None
    try:
        return Until(text, round(_INSTANT.validate_python(text).timestamp() * 1000))
    except ValidationError:
        raise click.BadParameter(f"{text!r} is no time like 2026-05-04T12:00:00Z") from None


RUN = click.option("--run", type=click.IntRange(min=1), help="The run of this number.")
UNTIL = click.option(
    "--until",
    callback=_until,
    metavar="TIME",
    help="The last run that ends no later, as 2026-05-04T12:00:00Z.",
)
ON_TRUNCATION = click.option(
    "--on-truncation",
    type=click.Choice(["Fail", "Record"]),
    default="Fail",
    show_default=True,
    help="What to do with a run that lacks bytes which were lost before they could be archived.",
)
