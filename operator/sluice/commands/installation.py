"""Implement `sluice check-installation`, which `helm test` runs in a pod."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING, Any, Final

import click

from sluice import console
from sluice.errors import EXIT_CODES, Category

if TYPE_CHECKING:
    from sluice.administration.installation import Right


_RULES: Final[dict[str, Any]] = {
    "required": True,
    "callback": lambda _context, _option, value: _rights(value),
    "metavar": "JSON",
}
"""The settings of an option that takes rules of RBAC."""


@click.command("check-installation", hidden=True)
@click.option("--probe", required=True, metavar="URL", help="Where the operator says it is ready.")
@click.option(
    "--account", required=True, metavar="NAMESPACE/NAME", help="The operator's ServiceAccount."
)
@click.option(
    "--rules",
    "rights",
    **_RULES,
    help="Rules of RBAC: what the account has to be allowed.",
)
@click.option(
    "--own-rules",
    "own_rights",
    **_RULES,
    help="The same, in the account's own namespace only.",
)
@click.option(
    "--namespace",
    "namespaces",
    multiple=True,
    metavar="NAME",
    help="Where it has to be allowed this; may be repeated.  [default: everywhere]",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, max=3600),
    default=60,
    show_default=True,
    metavar="SECONDS",
    help="For how long the checks are repeated.",
)
def check_installation(
    *,
    probe: str,
    account: str,
    rights: list[Right],
    own_rights: list[Right],
    namespaces: tuple[str, ...],
    timeout: float,
) -> None:
    """Check that the kinds are served, the operator is ready, and has its rights."""
    found = asyncio.run(
        _problems(
            probe,
            account,
            rights=rights,
            own_rights=own_rights,
            namespaces=namespaces,
            timeout=timeout,
        )
    )
    if not found:
        count = len(rights) + len(own_rights)
        console.err.print(f"OK: the operator is ready, and {account} has its {count} rights.")
        return
    for problem in found:
        console.err.print(console.printable(problem), markup=False)
    console.err.print(f"FAILED: {len(found)} checks, see above.")
    sys.exit(EXIT_CODES[Category.INFRASTRUCTURE])


async def _problems(
    probe: str,
    account: str,
    *,
    rights: list[Right],
    own_rights: list[Right],
    namespaces: tuple[str, ...],
    timeout: float,  # noqa: ASYNC109 - for the whole
) -> list[str]:
    # Imported here: few commands need Kubernetes' client, which takes a second.
    from sluice.administration.installation import Installation, ServiceAccount  # noqa: PLC0415
    from sluice.kube.api.client import Api  # noqa: PLC0415

    namespace, _, name = account.partition("/")
    async with await Api.connect() as api:
        installation = Installation(
            api,
            probe=probe,
            account=ServiceAccount(namespace, name),
            rights=rights,
            own_rights=own_rights,
            namespaces=namespaces,
        )
        return await installation.problems(timeout)


def _rights(text: str) -> list[Right]:
    """Read an option's rules."""
    from sluice.administration.installation import rights_of  # noqa: PLC0415 - as above

    try:
        rights = list(dict.fromkeys(rights_of(json.loads(text))))
    except (ValueError, KeyError, TypeError, AttributeError):
        rights = []
    if not rights:
        raise click.BadParameter("write a JSON list of rules, with apiGroups, resources, verbs")
    return rights
