"""Complete kinds and names in shells, and implement `sluice completion`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import click
from click.shell_completion import CompletionItem, get_completion_class

from sluice.api.registry import DRIVEN, KINDS, WITH_JOBS
from sluice.commands.shared import PROGRAM, VARIABLE
from sluice.errors import SluiceError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.api.registry import KindSpec

DEADLINE: Final = 2.0
"""Seconds that a shell waits for names at most."""

_SCRIPTS: Final = {
    "bash": "source <(sluice completion bash), in ~/.bashrc",
    "zsh": "source <(sluice completion zsh), in ~/.zshrc after compinit",
    "fish": "sluice completion fish | source, in ~/.config/fish/config.fish",
}


@click.command(epilog="\b\n" + "\n".join(_SCRIPTS.values()))
@click.argument("shell", type=click.Choice([*_SCRIPTS]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that completes commands, options, kinds and names in a shell.

    Names of resources come from the cluster, if it answers within two seconds.
    """
    made = get_completion_class(shell)
    if made is None:  # for the type checker: click has all shells of the choice
        return
    click.echo(made(context.find_root().command, {}, PROGRAM, VARIABLE).source())


def complete_names(
    context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete `[KIND/]NAME` of any kind."""
    return _named(context, KINDS, incomplete)


def complete_driven(
    context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete `[KIND/]NAME` of the kinds that drivers work for."""
    return _named(context, DRIVEN, incomplete)


def complete_with_jobs(
    context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete `[KIND/]NAME` of the kinds for which the operator makes Jobs."""
    return _named(context, WITH_JOBS, incomplete)


def complete_archives(
    context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete `[KIND/]NAME` of the kinds that make archives."""
    from sluice.administration.restoring import RESTORED  # noqa: PLC0415 - takes a second

    return _named(context, RESTORED, incomplete)


def complete_drilled(
    context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete `[KIND/]NAME` of the kind that has restore drills."""
    from sluice.administration.drilling import DRILLED  # noqa: PLC0415 - takes a second

    return _named(context, DRILLED, incomplete)


def complete_words(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete `KIND [NAME...]` and `KIND/NAME`."""
    from sluice.administration.naming import kinds_of  # noqa: PLC0415 - takes a second

    before: Sequence[str] = context.params.get(parameter.name or "") or ()
    if "/" in incomplete or any("/" in word for word in before):
        return _named(context, KINDS, incomplete)
    if not before:
        words = [word for kind in KINDS for word in (kind.name.lower(), kind.plural, kind.short)]
        return [CompletionItem(word) for word in words if word.startswith(incomplete)]
    try:
        kinds = kinds_of(before[0])
    except SluiceError:
        return []
    found = _names(context, kinds)
    names = sorted({name for _, name in found if name.startswith(incomplete)} - {*before[1:]})
    return [CompletionItem(name) for name in names]


def _named(
    context: click.Context, kinds: Sequence[KindSpec], incomplete: str
) -> list[CompletionItem]:
    """Return names, as `NAME` and as `KIND/NAME`, that begin with what was typed."""
    if "/" in incomplete:
        from sluice.administration.naming import words_of  # noqa: PLC0415 - takes a second

        word = incomplete.partition("/")[0]
        kinds = [kind for kind in kinds if word in words_of(kind)]
        found = [f"{word}/{name}" for _, name in _names(context, kinds)]
    else:
        pairs = _names(context, kinds)
        found = [name for _, name in pairs] if incomplete else []
        found += [f"{kind.name.lower()}/{name}" for kind, name in pairs]
    return [CompletionItem(text) for text in sorted({*found}) if text.startswith(incomplete)]


def _names(context: click.Context, kinds: Sequence[KindSpec]) -> list[tuple[KindSpec, str]]:
    """Return the names of resources; none if the cluster does not answer in time."""
    try:
        return asyncio.run(_listed(context.params.get("namespace"), kinds))
    except (SluiceError, TimeoutError, OSError):
        return []  # a shell shows candidates, and no errors


async def _listed(namespace: str | None, kinds: Sequence[KindSpec]) -> list[tuple[KindSpec, str]]:
    from sluice.administration.naming import names_of  # noqa: PLC0415 - takes a second
    from sluice.kube.api.client import Api  # noqa: PLC0415 - as above
    from sluice.kube.api.context import current_namespace  # noqa: PLC0415 - as above

    async with asyncio.timeout(DEADLINE), await Api.connect() as api:
        place = namespace or current_namespace()
        found = await asyncio.gather(*(names_of(api, kind, place) for kind in kinds))
    return [(kind, name) for kind, names in zip(kinds, found, strict=True) for name in names]
