"""All texts that must contain no password, wherever a copy runs."""

from __future__ import annotations

import base64
import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from support.command.sluice_command import descendants

if TYPE_CHECKING:
    from localstore import User
    from support.cluster.kubelet import DriverPod
    from support.cluster.operator_process import OperatorProcess
    from support.tenants.tenant import Tenant

_KINDS: Final = (
    "streamcopies,scopecopies,streamarchives,ephemeralstreams,streamstores,jobs,pods,configmaps,"
    "events,serviceaccounts"
)
"""All kinds that Sluice writes, except Secrets. They hold specs, statuses, environments, and the
termination messages of containers."""


def of_cluster(tenant: Tenant, operator: OperatorProcess) -> dict[str, str]:
    """Return the objects of a namespace, and the log and the metrics of its operator."""
    return {
        "objects": json.dumps(tenant.get_all(_KINDS), ensure_ascii=False),
        "the operator's log": operator.log(),
        "metrics": operator.probe("metrics")[1],
    }


def of_driver(driver: DriverPod) -> dict[str, str]:
    """Return a driver's log, and the arguments and environments of all its processes."""
    found = {"a driver's log": driver.log.read_text(errors="replace")}
    pid = driver.process.pid
    for one in (pid, *descendants(pid)):
        for file in ("cmdline", "environ"):
            with suppress(OSError):
                found[f"{file} of {one}"] = Path(f"/proc/{one}/{file}").read_text(errors="replace")
    return found


def leaks(texts: dict[str, str], *users: User) -> list[str]:
    """Return the names of texts that contain a password, plain or as in headers and Secrets."""
    words = [
        word
        for user in users
        for word in (
            user.password,
            base64.b64encode(user.password.encode()).decode(),
            base64.b64encode(f"{user.name}:{user.password}".encode()).decode(),
        )
    ]
    return [what for what, text in texts.items() if any(word in text for word in words)]
