"""Define what commands share: options, settings, exit codes, output of JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from sluice.config import Settings
from sluice.errors import EXIT_CODES, InvalidSpec

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterable

    from sluice.core.values.trouble import Trouble

PROGRAM: Final = "sluice"
VARIABLE: Final = "_SLUICE_COMPLETE"
"""The variable by which a shell asks this program for completions."""

FILE = click.option(
    "-f",
    "--filename",
    "file",
    required=True,
    type=click.Path(dir_okay=False, allow_dash=True),
    help="YAML with StreamStore, StreamCopy, ScopeCopy and StreamArchive resources; - reads "
    "standard input.",
)
OUTPUT = click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="json prints one JSON value on standard output.",
)
CREDENTIALS = click.option(
    "--credentials-dir",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of Secrets, as Kubernetes mounts them: SECRET/username and SECRET/password, for "
    "S3 SECRET/accessKeyId and SECRET/secretAccessKey.",
)
VOLUMES = click.option(
    "--volumes-dir",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of volumes, each under the name of its claim.",
)
PATIENCE = click.option(
    "--patience",
    type=click.FloatRange(min=0),
    default=None,
    metavar="SECONDS",
    help="Give a failing copy up after this long without progress. [default: 300 for the store]",
)


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The result of one copy of a file.

    Attributes:
        json: the result as JSON values.
        words: the number of streams by how they ended, in the words of a summary.
        failures: what went wrong.
    """

    json: dict[str, Any]
    words: Counter[str]
    failures: list[Trouble] = field(default_factory=list)


def exit_code(failures: Iterable[Trouble]) -> int:
    """Return the highest exit code of the failures, 0 without failures."""
    return max((EXIT_CODES[failure.category] for failure in failures), default=0)


def settings_of(credentials_dir: Path | None, volumes_dir: Path | None = None) -> Settings:
    """Read the settings from the environment. An option overrides its variable.

    Raises:
        InvalidSpec: a variable has an impossible value.
    """
    try:
        settings = Settings.from_environment()
    except ValueError as error:
        raise InvalidSpec(str(error), remedy="Correct the environment's variable.") from error
    return replace(
        settings,
        credentials_dir=credentials_dir or settings.credentials_dir,
        volumes_dir=volumes_dir or settings.volumes_dir,
    )


def print_json(value: Any) -> None:
    """Print one JSON value on standard output."""
    click.echo(json.dumps(value, indent=2))


def print_yaml(value: Any) -> None:
    """Print one YAML document on standard output. Characters that are no ASCII are escaped."""
    import yaml  # noqa: PLC0415 - slow, and few commands need it

    # Tenants wrote parts of the value: escaped, they cannot control the terminal.
    click.echo(yaml.safe_dump(value, sort_keys=False, allow_unicode=False), nl=False)
