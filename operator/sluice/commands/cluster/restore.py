"""Implement `sluice restore`: have a cluster's operator restore a stream or a scope."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from sluice.api.status.common import ConditionType
from sluice.commands.cluster.completion import complete_archives
from sluice.commands.cluster.shared import (
    NAMESPACE,
    QUIET,
    TIMEOUT,
    as_list,
    connected,
    output_option,
    print_as,
    say,
)
from sluice.commands.cluster.verbs import tell_awaited
from sluice.commands.runs import ON_TRUNCATION, RUN, UNTIL
from sluice.errors import InvalidSpec

if TYPE_CHECKING:
    from sluice.administration.resources import Awaited
    from sluice.administration.restoring import Restore
    from sluice.commands.runs import Until
    from sluice.kube.api.kinds import Object


@click.command()
@click.argument("name", metavar="[KIND/]NAME", shell_complete=complete_archives)
@click.option(
    "--to", "target", required=True, metavar="STORE:SCOPE[/STREAM]", help="Where to restore to."
)
@RUN
@UNTIL
@click.option("--append", is_flag=True, help="Append to streams that exist.")
@click.option("--seal", is_flag=True, help="Seal the restored stream when it is whole.")
@click.option("--create-scope", is_flag=True, help="Make the scope if it does not exist.")
@ON_TRUNCATION
@click.option(
    "--name",
    "new_name",
    metavar="NAME",
    help="The name of the resource that restores.  [default: one that follows from the options]",
)
@click.option("--wait", "waits", is_flag=True, help="Wait until it is restored, or has failed.")
@TIMEOUT
@click.option("--dry-run", is_flag=True, help="Make nothing, print the resource (-o yaml).")
@NAMESPACE
@output_option("json", "yaml", "name")
@QUIET
def restore(
    *,
    name: str,
    target: str,
    run: int | None,
    until: Until | None,
    append: bool,
    seal: bool,
    create_scope: bool,
    on_truncation: str,
    new_name: str | None,
    waits: bool,
    timeout: float | None,
    dry_run: bool,
    namespace: str | None,
    output: str,
) -> None:
    """Restore a stream from a StreamArchive, or a scope from the archives of a ScopeCopy.

    Makes a StreamCopy or a ScopeCopy in the archive's namespace, and the operator restores. The
    last run is restored unless --run or --until says otherwise. The same command again finds the
    same resource.
    """
    from sluice.administration.restoring import Restore  # noqa: PLC0415 - takes a second

    if dry_run and waits:
        raise click.UsageError("--dry-run makes nothing to --wait for")
    store, scope, stream = _place(target)
    in_target: Object = {"scopePolicy": "CreateIfAbsent"} if create_scope else {}
    options: Object = {"onTruncation": on_truncation} if on_truncation != "Fail" else {}
    if stream is None:
        if seal:
            raise click.UsageError("--seal is for single streams")
        options |= {"onExists": "Append"} if append else {}
    else:
        in_target |= {"onExists": "Append"} if append else {}
        in_target |= {"sealWhenDone": True} if seal else {}
    wish = Restore(
        store=store,
        scope=scope,
        stream=stream,
        run=run,
        until=None if until is None else until.text,
        options=options,
        in_target=in_target,
        name=new_name,
    )
    end = asyncio.run(
        _restore(name, namespace, wish, output, dry=dry_run, waits=waits, seconds=timeout)
    )
    if end is not None:
        tell_awaited([end], ConditionType.READY, output)


async def _restore(
    name: str,
    namespace: str | None,
    wish: Restore,
    output: str,
    *,
    dry: bool,
    waits: bool,
    seconds: float | None,
) -> Awaited | None:
    """Make the resource; with `waits`, return how it ended, and leave its output to the caller."""
    # Imported here: few commands need Kubernetes' client, which takes a second.
    from sluice.administration import resources, restoring  # noqa: PLC0415

    async with connected(namespace, changes=True) as place:
        archive = await place.find(name, restoring.RESTORED)
        here = archive.namespace
        body = await place.api.get(archive.kind, here, archive.name)
        if body is None:
            raise resources.gone(archive)
        made = restoring.restore_of(archive, body, wish)
        await restoring.require_store(place.api, here, wish.store)
        if dry:
            full = f"{made['kind'].lower()}.{made['apiVersion'].partition('/')[0]}"
            names = [f"{full}/{made['metadata']['name']}"]
            print_as("yaml" if output == "text" else output, made, names)
            return None
        resource, created, new = await restoring.create(place.api, made)
        say(f"{resource} {'is made' if new else 'exists already'}, and restores {archive}")
        if waits:
            ready = ConditionType.READY
            return await resources.until(place.api, resource, ready, seconds=seconds)
        print_as(output, as_list([created], single=True), [resource.full])
        return None


def _place(text: str) -> tuple[str, str, str | None]:
    """Split STORE:SCOPE/STREAM, or STORE:SCOPE for a scope."""
    store, _, rest = text.partition(":")
    scope, slash, stream = rest.partition("/")
    if not store or not scope or (slash and not stream) or "/" in stream:
        raise InvalidSpec(
            f"{text!r} is no stream and no scope",
            field="--to",
            remedy="Write STORE:SCOPE/STREAM, or STORE:SCOPE for archives of a scope.",
        )
    return store, scope, stream or None
