"""Define what commands on a cluster's resources share: options, the connection, output."""

from __future__ import annotations

import sys
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import click

from sluice import console
from sluice.commands.cluster.completion import complete_names
from sluice.commands.shared import print_json, print_yaml
from sluice.errors import ApiUnavailable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence

    from sluice.administration.naming import Named
    from sluice.api.registry import KindSpec
    from sluice.kube.api.client import Api
    from sluice.kube.api.kinds import Object
    from sluice.kube.api.responses import Refused

_Decorated = TypeVar("_Decorated", bound="Callable[..., Any] | click.Command")

MANAGER: Final = "sluice"
"""The name under which the API server notes what a person has changed."""

OVER: Final = 124
"""Exit code of a wait whose time was over, as of timeout(1)."""

NAMES = click.argument(
    "names", nargs=-1, required=True, metavar="[KIND/]NAME...", shell_complete=complete_names
)
NAMESPACE = click.option(
    "-n",
    "--namespace",
    metavar="NAME",
    help="The namespace.  [default: the namespace of KUBECONFIG's context, or the pod's]",
)
ALL_NAMESPACES = click.option(
    "-A", "--all-namespaces", is_flag=True, help="The resources of all namespaces."
)
SELECTOR = click.option(
    "-l", "--selector", metavar="LABELS", help="Only resources with these labels: app=shop,tier!=db"
)
QUIET = click.option(
    "-q",
    "--quiet",
    is_flag=True,
    expose_value=False,
    callback=lambda _context, _option, value: console.hush() if value else None,
    help="Print results and errors only.",
)
TIMEOUT = click.option(
    "--timeout",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help=f"Exit with {OVER} after this time.  [default: no limit]",
)


class ClusterPlace(NamedTuple):
    """A connection to the API server, and the namespace that a command is about.

    Attributes:
        api: the API server.
        namespace: the namespace; None for all.
    """

    api: Api
    namespace: str | None

    @property
    def name(self) -> str:
        """The namespace, for messages."""
        return "any namespace" if self.namespace is None else f"namespace {self.namespace!r}"

    async def find(self, name: str, kinds: Sequence[KindSpec]) -> Named:
        """Find a resource of these kinds by `[KIND/]NAME`. See `naming.find`."""
        # Imported here: few commands need Kubernetes' client, which takes a second.
        from sluice.administration.naming import find  # noqa: PLC0415

        return await find(self.api, self.namespace or "", name, kinds=kinds)


@asynccontextmanager
async def connected(
    namespace: str | None, *, everywhere: bool = False, changes: bool = False
) -> AsyncIterator[ClusterPlace]:
    """Connect to the API server. An error tells users, and not the operator's administrator.

    Args:
        namespace: the namespace; None for the user's.
        everywhere: take all namespaces instead.
        changes: whether the command changes resources.

    Raises:
        click.UsageError: both a namespace and all namespaces are named.
        ApiUnavailable: there is no API server, or a call in the block failed.
    """
    if namespace is not None and everywhere:
        raise click.UsageError("give --namespace or --all-namespaces, not both")
    # Imported here: few commands need Kubernetes' client, which takes a second.
    from sluice.kube.api.client import Api  # noqa: PLC0415
    from sluice.kube.api.context import current_namespace  # noqa: PLC0415

    with for_users():
        async with await (Api.connect(manager=MANAGER) if changes else Api.connect()) as api:
            yield ClusterPlace(api, None if everywhere else namespace or current_namespace())


@contextmanager
def for_users() -> Iterator[None]:
    """Have an error of the block tell users what to do, and not the operator's administrator."""
    try:
        yield
    except ApiUnavailable as error:
        if error.remedy == ApiUnavailable.default_remedy:
            error.remedy = _remedy(error)
        raise


def _remedy(error: ApiUnavailable | Refused) -> str:
    """Return what a user can do about an API server that is away or refuses."""
    match getattr(error, "status", None):
        case None:
            return "Check that the cluster runs, and that KUBECONFIG names it: kubectl version."
        case 401:
            return "Log in to the cluster again: kubectl get namespaces has to work."
        case 403:
            return (
                "Ask the cluster's administrator for this right. kubectl auth can-i --list tells "
                "which ones you have."
            )
        case 404:
            return (
                "Check that Sluice is installed in this cluster (docs/operations.md), and that "
                "KUBECONFIG names it."
            )
        case _:
            return "Try again. If that does not help, look at the API server."


def output_option(*formats: str, default: str = "text") -> Callable[[_Decorated], _Decorated]:
    """Return the option -o with these formats."""
    known = {
        "wide": "wide shows more columns.",
        "json": "json and yaml print the whole answer.",
        "name": "name prints KIND/NAME only.",
    }
    return click.option(
        "-o",
        "--output",
        type=click.Choice([default, *formats]),
        default=default,
        show_default=True,
        help=" ".join(text for name, text in known.items() if name in formats),
    )


def print_as(output: str, value: Any, names: Iterable[str]) -> bool:
    """Print a result in a format for programs. Return False if the format is for people.

    Args:
        output: the format.
        value: the result as JSON values.
        names: the result as names.
    """
    match output:
        case "json":
            print_json(value)
        case "yaml":
            print_yaml(value)
        case "name":
            for name in names:
                click.echo(console.printable(name))
        case _:
            return False
    return True


def as_list(bodies: Sequence[Object], *, single: bool) -> Object:
    """Return objects as kubectl prints them: one by itself, several as a List."""
    shown = [shortened(body) for body in bodies]
    if single and len(shown) == 1:
        return shown[0]
    return {"apiVersion": "v1", "kind": "List", "metadata": {}, "items": shown}


def shortened(body: Object) -> Object:
    """Return an object without the notes about who set which field, as kubectl shows it."""
    meta = {key: value for key, value in body["metadata"].items() if key != "managedFields"}
    return body | {"metadata": meta}


def say(text: str) -> None:
    """Print a note for people on standard error, unless --quiet is given."""
    console.note.print(text, markup=False)


def ends(code: int) -> None:
    """End the command with an exit code, if it is no success."""
    if code:
        sys.exit(code)
