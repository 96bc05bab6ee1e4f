"""The pod security standard `restricted`, as Kubernetes' documentation states it.

https://kubernetes.io/docs/concepts/security/pod-security-standards/
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

VOLUMES = {
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "persistentVolumeClaim",
    "projected",
    "secret",
}
SAFE_SYSCTLS = {
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.ping_group_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
}
SAFE_SELINUX = {"", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"}
SECCOMP = {"RuntimeDefault", "Localhost"}


def violations(pod: dict[str, Any]) -> list[str]:
    """Return the violations of the standard in a pod's spec; empty if it admits the pod."""
    return [
        *_of_pod(pod),
        *(found for one in _containers(pod) for found in _of_container(pod, one)),
    ]


def _containers(pod: dict[str, Any]) -> list[dict[str, Any]]:
    kinds = ("containers", "initContainers", "ephemeralContainers")
    return [container for kind in kinds for container in pod.get(kind) or []]


def _of_pod(pod: dict[str, Any]) -> Iterator[str]:
    for field in ("hostNetwork", "hostPID", "hostIPC"):
        if pod.get(field):
            yield field
    for volume in pod.get("volumes") or []:
        if not set(volume) - {"name"} <= VOLUMES:
            yield f"volume {volume['name']}"
    security = pod.get("securityContext") or {}
    for sysctl in security.get("sysctls") or []:
        if sysctl["name"] not in SAFE_SYSCTLS:
            yield f"sysctl {sysctl['name']}"
    yield from _of_both(security, "pod")


def _of_both(security: dict[str, Any], where: str) -> Iterator[str]:
    """Yield violations in settings that a pod or a container may have."""
    if (security.get("windowsOptions") or {}).get("hostProcess"):
        yield f"{where}: hostProcess"
    linux = security.get("seLinuxOptions") or {}
    if linux.get("type", "") not in SAFE_SELINUX or linux.get("user") or linux.get("role"):
        yield f"{where}: seLinuxOptions"
    if (security.get("appArmorProfile") or {}).get("type") == "Unconfined":
        yield f"{where}: appArmorProfile"
    if security.get("runAsUser") == 0:
        yield f"{where}: runAsUser"
    if security.get("runAsNonRoot") is False:
        yield f"{where}: runAsNonRoot"
    if "seccompProfile" in security and security["seccompProfile"].get("type") not in SECCOMP:
        yield f"{where}: seccompProfile"


def _of_container(pod: dict[str, Any], container: dict[str, Any]) -> Iterator[str]:
    where = container["name"]
    whole, security = pod.get("securityContext") or {}, container.get("securityContext") or {}
    yield from _of_both(security, where)
    if security.get("privileged"):
        yield f"{where}: privileged"
    if security.get("allowPrivilegeEscalation") is not False:
        yield f"{where}: allowPrivilegeEscalation"
    if security.get("procMount", "Default") != "Default":
        yield f"{where}: procMount"
    capabilities = security.get("capabilities") or {}
    if "ALL" not in (capabilities.get("drop") or []):
        yield f"{where}: capabilities.drop"
    if set(capabilities.get("add") or []) - {"NET_BIND_SERVICE"}:
        yield f"{where}: capabilities.add"
    if any(port.get("hostPort") for port in container.get("ports") or []):
        yield f"{where}: hostPort"
    for field in ("runAsNonRoot", "seccompProfile"):
        if not security.get(field, whole.get(field)):
            yield f"{where}: {field}"
