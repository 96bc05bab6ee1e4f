"""Mount what stores need into pods: Secrets, certificates, volumes with archives; and /tmp."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from sluice.core.workloads.request import CONFIG_MAPS
from sluice.stores.trust import CLIENT_KEYS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sluice.core.values.model import StoreAddress
    from sluice.core.workloads.plan import Plan
    from sluice.kube.api.kinds import Object

CREDENTIALS_DIR: Final = "/var/run/sluice/credentials"
VOLUMES_DIR: Final = "/var/run/sluice/volumes"

SCRATCH: Final = "spark-local-dir-tmp"
"""The volume at /tmp. Spark recognizes it by this name, or it would add one without a limit."""


def store_volumes(plan: Plan, *, scratch: str) -> tuple[list[Object], list[Object]]:
    """Return the volumes, and their mounts, that drivers and executors need for a plan's stores.

    Args:
        plan: the plan.
        scratch: the size of /tmp, as a quantity.
    """
    return mounted_volumes(_addresses(plan), scratch=scratch)


def mounted_volumes(
    addresses: Sequence[StoreAddress], *, scratch: str
) -> tuple[list[Object], list[Object]]:
    """Return the volumes, and their mounts, that a pod needs to open stores.

    Args:
        addresses: the stores.
        scratch: the size of /tmp, as a quantity.
    """
    volumes, mounts = login_volumes(addresses, scratch=scratch)
    for number, claim in enumerate(_claims(addresses)):
        name = f"archives-{number}"
        volumes.append({"name": name, "persistentVolumeClaim": {"claimName": claim}})
        mounts.append({"name": name, "mountPath": f"{VOLUMES_DIR}/{claim}"})
    return volumes, mounts


def login_volumes(
    addresses: Iterable[StoreAddress], *, scratch: str
) -> tuple[list[Object], list[Object]]:
    """Return the volumes, and their mounts, that a pod needs to log in to stores.

    Args:
        addresses: the stores.
        scratch: the size of /tmp, as a quantity.
    """
    volumes: list[Object] = [{"name": SCRATCH, "emptyDir": {"sizeLimit": scratch}}]
    mounts: list[Object] = [{"name": SCRATCH, "mountPath": "/tmp"}]  # noqa: S108 - the pod's own
    for number, (folder, keys) in enumerate(sorted(_files(addresses).items())):
        name = f"credentials-{number}"
        volumes.append({"name": name, **_projection(folder, keys)})
        mounts.append({"name": name, "mountPath": f"{CREDENTIALS_DIR}/{folder}", "readOnly": True})
    return volumes, mounts


def claims_of(plan: Plan) -> list[str]:
    """Return the names of the PersistentVolumeClaims that a plan reads from or writes to."""
    return _claims(_addresses(plan))


def _claims(addresses: Iterable[StoreAddress]) -> list[str]:
    return sorted({address.claim for address in addresses if address.claim is not None})


def _addresses(plan: Plan) -> tuple[StoreAddress, ...]:
    return (*plan.sources, plan.target)


def _files(addresses: Iterable[StoreAddress]) -> dict[str, list[str]]:
    """Return the keys that stores need, by their folder, which is a Secret or a ConfigMap."""
    found: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for address in addresses:
        if address.secret is not None:
            found[address.secret] |= dict.fromkeys(address.kind.keys or ())
        if address.client_certificate is not None:
            found[address.client_certificate] |= dict.fromkeys(CLIENT_KEYS)
        if address.ca is not None:
            folder, _, key = address.ca.rpartition("/")
            found[folder] |= {key: None}
    return {folder: list(keys) for folder, keys in found.items()}


def _projection(folder: str, keys: list[str]) -> Object:
    """Return the source of a volume that has some keys of a Secret or a ConfigMap."""
    items = [{"key": key, "path": key} for key in keys]
    name = folder.removeprefix(CONFIG_MAPS)
    if name != folder:
        return {"configMap": {"name": name, "items": items}}
    return {"secret": {"secretName": name, "defaultMode": 0o440, "items": items}}
