"""What of stores is mounted into pods: Secrets, certificates, volumes with archives; and /tmp."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from sluice.core.workloads.request import CONFIG_MAPS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sluice.core.values.model import StoreAddress
    from sluice.core.workloads.plan import Plan
    from sluice.kube.api.kinds import Object

CREDENTIALS_DIR: Final = "/var/run/sluice/credentials"
VOLUMES_DIR: Final = "/var/run/sluice/volumes"

SCRATCH: Final = "spark-local-dir-tmp"
"""The volume at /tmp. By this name Spark knows it as its own; else it adds one without a limit."""


def store_volumes(plan: Plan, *, scratch: str) -> tuple[list[Object], list[Object]]:
    """What drivers and executors have alike: volumes, and where they are mounted.

    Args:
        plan: what they work for.
        scratch: the size of /tmp.
    """
    volumes: list[Object] = [{"name": SCRATCH, "emptyDir": {"sizeLimit": scratch}}]
    mounts: list[Object] = [{"name": SCRATCH, "mountPath": "/tmp"}]  # noqa: S108 - the pod's own
    for number, (folder, keys) in enumerate(sorted(_files(_addresses(plan)).items())):
        name = f"credentials-{number}"
        volumes.append({"name": name, **_projection(folder, keys)})
        mounts.append({"name": name, "mountPath": f"{CREDENTIALS_DIR}/{folder}", "readOnly": True})
    for number, claim in enumerate(claims_of(plan)):
        name = f"archives-{number}"
        volumes.append({"name": name, "persistentVolumeClaim": {"claimName": claim}})
        mounts.append({"name": name, "mountPath": f"{VOLUMES_DIR}/{claim}"})
    return volumes, mounts


def claims_of(plan: Plan) -> list[str]:
    """The PersistentVolumeClaims that a plan works in."""
    return sorted({address.claim for address in _addresses(plan) if address.claim is not None})


def _addresses(plan: Plan) -> tuple[StoreAddress, ...]:
    return (*plan.sources, plan.target)


def _files(addresses: Iterable[StoreAddress]) -> dict[str, list[str]]:
    """The files that stores need, by their folder: a Secret's or a ConfigMap's."""
    found: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for address in addresses:
        if address.secret is not None:
            found[address.secret] |= dict.fromkeys(address.kind.keys or ())
        if address.ca is not None:
            folder, _, key = address.ca.rpartition("/")
            found[folder] |= {key: None}
    return {folder: list(keys) for folder, keys in found.items()}


def _projection(folder: str, keys: list[str]) -> Object:
    """A volume with some keys of a Secret or a ConfigMap."""
    items = [{"key": key, "path": key} for key in keys]
    name = folder.removeprefix(CONFIG_MAPS)
    if name != folder:
        return {"configMap": {"name": name, "items": items}}
    return {"secret": {"secretName": name, "defaultMode": 0o440, "items": items}}
