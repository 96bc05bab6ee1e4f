"""The checker by which other tests judge pods."""

import copy
from typing import Any

import pytest

from support.kube.pod_security import violations

POD: dict[str, Any] = {
    "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
    "volumes": [{"name": "tmp", "emptyDir": {}}],
    "containers": [
        {
            "name": "main",
            "securityContext": {
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
            },
        }
    ],
}


def changed(path: str, value: object) -> dict[str, Any]:
    """Return the pod with one field set. `c.` stands for its container's security context."""
    pod = copy.deepcopy(POD)
    place: Any = pod
    if path.startswith("c."):
        place, path = pod["containers"][0]["securityContext"], path[2:]
    *parents, last = path.split(".")
    for parent in parents:
        place = place.setdefault(parent, {})
    place[last] = value
    return pod


def test_a_restricted_pod_is_admitted() -> None:
    """It violates no rule, whether the pod or the container sets the fields."""
    assert violations(POD) == []
    own = {"runAsNonRoot": True, "seccompProfile": {"type": "Localhost"}}
    pod = changed("securityContext", {})
    pod["containers"][0]["securityContext"] |= own
    assert violations(pod) == []


@pytest.mark.parametrize(
    ("path", "value", "found"),
    [
        ("hostNetwork", True, "hostNetwork"),
        ("hostPID", True, "hostPID"),
        ("hostIPC", True, "hostIPC"),
        ("volumes", [{"name": "v", "hostPath": {"path": "/"}}], "volume v"),
        ("securityContext.sysctls", [{"name": "kernel.msgmax"}], "sysctl kernel.msgmax"),
        ("securityContext.runAsUser", 0, "pod: runAsUser"),
        ("securityContext.runAsNonRoot", None, "main: runAsNonRoot"),
        ("securityContext.seccompProfile", {"type": "Unconfined"}, "pod: seccompProfile"),
        ("securityContext.seLinuxOptions", {"user": "u"}, "pod: seLinuxOptions"),
        ("securityContext.appArmorProfile", {"type": "Unconfined"}, "pod: appArmorProfile"),
        ("securityContext.windowsOptions", {"hostProcess": True}, "pod: hostProcess"),
        ("c.privileged", True, "main: privileged"),
        ("c.allowPrivilegeEscalation", True, "main: allowPrivilegeEscalation"),
        ("c.allowPrivilegeEscalation", None, "main: allowPrivilegeEscalation"),
        ("c.capabilities", {"drop": ["NET_RAW"]}, "main: capabilities.drop"),
        ("c.capabilities", {"drop": ["ALL"], "add": ["SYS_ADMIN"]}, "main: capabilities.add"),
        ("c.procMount", "Unmasked", "main: procMount"),
        ("c.runAsNonRoot", False, "main: runAsNonRoot"),
        ("c.runAsUser", 0, "main: runAsUser"),
    ],
)
def test_what_the_standard_forbids_is_found(path: str, value: object, found: str) -> None:
    """The checker knows each rule of the standard."""
    assert found in violations(changed(path, value))
