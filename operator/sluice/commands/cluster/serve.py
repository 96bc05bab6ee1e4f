"""Implement `sluice serve`: results of queries and the state of resources, for many viewers."""

from __future__ import annotations

import asyncio
import secrets
import signal
import ssl
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from sluice.commands.cluster.shared import ALL_NAMESPACES, QUIET, connected, say
from sluice.errors import InvalidSpec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.kube.loop.settings import StoreSettings

_LOOPBACK: Final = "127.0.0.1"


@click.command()
@click.option(
    "-n",
    "--namespace",
    "namespaces",
    multiple=True,
    metavar="NAME",
    help="A namespace; may be given several times.  [default: the namespace of KUBECONFIG's "
    "context, or the pod's]",
)
@ALL_NAMESPACES
@click.option("--host", default=_LOOPBACK, show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    metavar="PORT",
    help="The port.  [default: any that is free]",
)
@click.option(
    "--access",
    type=click.Choice(["token", "kubernetes"]),
    default="token",
    show_default=True,
    help="Who may see results. token: everyone with the token of --token-file. kubernetes: the "
    "bearer of a token of Kubernetes sees what Kubernetes lets it see: get streamqueries/results.",
)
@click.option(
    "--token-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file with the token.  [default: a new token, which is printed]",
)
@click.option(
    "--tls-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder with tls.crt and tls.key, as Secrets of Kubernetes have them, for HTTPS.",
)
@click.option(
    "--allowed-store",
    "allowed",
    multiple=True,
    metavar="URL",
    help="The server of a store that may be opened; * for any characters. May be given several "
    "times.  [default: any]",
)
@click.option(
    "--labelled-secrets",
    is_flag=True,
    help="Open stores only with Secrets that have the label which allows StreamStores to use them.",
)
@click.option(
    "--docs-url", metavar="URL", help="The documentation's site, for links from reasons to it."
)
@QUIET
def serve(
    *,
    namespaces: tuple[str, ...],
    all_namespaces: bool,
    host: str,
    port: int,
    access: str,
    token_file: Path | None,
    tls_dir: Path | None,
    allowed: tuple[str, ...],
    labelled_secrets: bool,
    docs_url: str | None,
) -> None:
    """Serve live pages of queries, and a page of all resources, to many viewers.

    Each query has a page at /q/NAMESPACE/NAME: a chart, its rows as they come, lag and watermark.
    Programs get the same as server-sent events, JSON and Arrow. Nothing can be changed through it.
    """
    if all_namespaces and namespaces:
        raise click.UsageError("give --namespace or --all-namespaces, not both")
    if access == "kubernetes" and token_file is not None:
        raise click.UsageError("--token-file is for --access token")
    # Imported here: few commands need Kubernetes' client, which takes a second.
    from sluice.kube.api.context import current_namespace  # noqa: PLC0415
    from sluice.kube.loop.settings import StoreSettings  # noqa: PLC0415

    asyncio.run(
        _serve(
            () if all_namespaces else namespaces or (current_namespace(),),
            address=(host, port),
            token=None if access == "kubernetes" else token_file or secrets.token_urlsafe(),
            tls=None if tls_dir is None else _certificate(tls_dir),
            stores=StoreSettings(allowed=[*allowed], require_secret_label=labelled_secrets),
            docs=docs_url,
        )
    )


async def _serve(
    namespaces: Sequence[str],
    *,
    address: tuple[str, int],
    token: str | Path | None,
    tls: ssl.SSLContext | None,
    stores: StoreSettings,
    docs: str | None,
) -> None:
    """Serve until a signal comes. Without a token, Kubernetes decides who may see what."""
    from sluice.config import Settings  # noqa: PLC0415 - as above
    from sluice.kube.stores.connections import Connections  # noqa: PLC0415 - as above
    from sluice.serving.access import KubernetesAccess, OneToken  # noqa: PLC0415 - as above
    from sluice.serving.app import Address, Gateway, serving  # noqa: PLC0415 - as above
    from sluice.serving.board import Boards  # noqa: PLC0415 - as above
    from sluice.serving.queries import MOST_QUERIES, Queries  # noqa: PLC0415 - as above
    from sluice.serving.shares import Shares  # noqa: PLC0415 - as above

    async with connected(None, everywhere=True) as place, AsyncExitStack() as stack:
        connections = Connections(
            place.api,
            Settings.from_environment(),
            allowed=stores.allow,
            labelled=stores.require_secret_label,
        )
        stack.callback(connections.close)
        boards = Boards(place.api, namespaces, docs)
        shares = Shares("queries that are followed", MOST_QUERIES, alone=boards.alone)
        queries = Queries(place.api, connections, shares, boards.link)
        stack.callback(queries.close)
        access = KubernetesAccess(place.api.create) if token is None else OneToken(token)
        gateway = Gateway(access, boards, queries)
        url = await stack.enter_async_context(serving(gateway, Address(*address, tls)))
        ended = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, ended.set)
        say(f"Resources in {', '.join(namespaces) or 'all namespaces'}, until Ctrl-C:")
        # Behind `#`, no server and no log gets the token.
        click.echo(f"{url}#token={token}" if isinstance(token, str) else url)
        await ended.wait()


def _certificate(folder: Path) -> ssl.SSLContext:
    """Return the certificate of a folder.

    Raises:
        InvalidSpec: it cannot be read.
    """
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    except (OSError, ssl.SSLError) as error:
        raise InvalidSpec(
            f"the certificate cannot be read: {error}",
            field="--tls-dir",
            remedy="Name a folder with the files tls.crt and tls.key.",
        ) from error
    return context
