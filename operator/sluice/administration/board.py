"""Look at all resources together that a user may see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from sluice.administration.following import followed
from sluice.administration.naming import WantedResources
from sluice.administration.tables import bodies
from sluice.api.registry import KINDS
from sluice.kube.api.responses import Refused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.administration.following import FollowedResource
    from sluice.kube.api.client import Api
    from sluice.kube.api.kinds import Object

MOST: Final = 500
"""The most resources of a kind on a board."""


class Board(NamedTuple):
    """The resources of a namespace, or of all namespaces, at one time.

    Attributes:
        resources: each as it is followed, with its object, by namespace, kind and name.
        forbidden: the kinds that the user may not list.
        cut: the kinds that have more resources than `MOST`.
    """

    resources: Sequence[tuple[FollowedResource, Object]]
    forbidden: Sequence[str]
    cut: Sequence[str]


async def look(api: Api, namespace: str | None) -> Board:
    """Read all resources. Kinds that the user may not list are left out and named.

    Args:
        api: the API server.
        namespace: the namespace; None for all.

    Raises:
        ApiUnavailable: the API server cannot be asked, or the user may list no kind at all.
    """
    found, forbidden, cut = [], [], []
    for kind in KINDS:
        try:
            pairs = await bodies(api, [WantedResources(kind)], namespace, most=MOST + 1)
        except Refused as error:
            forbidden.append(kind.name)
            if not error.forbidden or len(forbidden) == len(KINDS):
                raise
            continue
        if len(pairs) > MOST:
            cut.append(kind.name)
        found += [(followed(*pair), pair[1]) for pair in pairs[:MOST]]
    order = [kind.name for kind in KINDS]
    found.sort(
        key=lambda pair: (
            pair[0].resource.namespace,
            order.index(pair[0].resource.spec.name),
            pair[0].resource.name,
        )
    )
    return Board(found, forbidden, cut)
