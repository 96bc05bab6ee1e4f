"""Objects of several namespaces, where their kind may not be known to the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.kube.api.client import Refused

if TYPE_CHECKING:
    from sluice.kube.api.client import Api
    from sluice.kube.api.kinds import Kind, Object
    from sluice.kube.loop.served import Served

_NOT_FOUND = 404


async def listed(api: Api, kind: Kind, served: Served) -> list[Object]:
    """The objects of some namespaces.

    Raises:
        ApiUnavailable: the API server cannot be asked, or refuses.
    """
    found: list[Object] = []
    for namespace in served.names or (None,):
        try:
            found += await api.list(kind, namespace)
        except Refused as error:
            if error.status != _NOT_FOUND:
                raise
            return []  # without its definition there is none of a kind
    return [one for one in found if served.include(one["metadata"]["namespace"])]
