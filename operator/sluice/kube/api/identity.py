"""Find the cluster's identity. It tells clusters apart that share a store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.errors import ApiUnavailable
from sluice.kube.api.kinds import NAMESPACE

if TYPE_CHECKING:
    from sluice.kube.api.client import Api


async def cluster_id(api: Api, given: str) -> str:
    """Return the cluster's identity: `given` by the administrator, or the UID of kube-system.

    Raises:
        ApiUnavailable: no identity is given, and the namespace cannot be read.
    """
    if given:
        return given
    found = await api.get(NAMESPACE, None, "kube-system")
    if found is None:
        raise ApiUnavailable("there is no namespace kube-system", remedy="Set clusterID.")
    return str(found["metadata"]["uid"])
