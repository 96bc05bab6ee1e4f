"""List objects of several namespaces, even if the cluster does not know their kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.kube.api.responses import Refused

if TYPE_CHECKING:
    from sluice.kube.api.client import Api
    from sluice.kube.api.kinds import Kind, Object
    from sluice.kube.loop.served import Served

_NOT_FOUND = 404


async def listed(api: Api, kind: Kind, served: Served) -> list[Object]:
    """List the objects of some namespaces. The list is empty if the cluster lacks the kind.

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
            return []  # there is no such CRD, so there are no objects of its kind
    return [one for one in found if served.include(one["metadata"]["namespace"])]
