"""The changes that pods need in the machine's network, and their removal."""

import json
from dataclasses import dataclass
from pathlib import Path

from localcluster.commands import run, succeeds
from localcluster.errors import LocalClusterError
from localcluster.node.layout import BRIDGE, POD_RANGE, SERVICE_RANGE

_COMMENT = "sluice-kubernetes"
_FORWARDING = Path("/proc/sys/net/ipv4/ip_forward")
_BRIDGE_FILTER = Path("/proc/sys/net/bridge/bridge-nf-call-iptables")

# Chains of Kubernetes' own programs, which leave them behind.
_KUBERNETES_CHAIN = "KUBE-"

# Each rule is inserted before the existing ones, so the last comes first. The address of a missing
# service is rejected, because a host outside might answer. Pods may connect to all addresses,
# whatever other rules forbid. Their packets to the outside get the machine's address.
_RULES = (
    ("filter", "FORWARD", ["-i", BRIDGE, "-j", "ACCEPT"]),
    ("filter", "FORWARD", ["-o", BRIDGE, "-j", "ACCEPT"]),
    ("filter", "FORWARD", ["-d", SERVICE_RANGE, "-j", "REJECT"]),
    ("filter", "OUTPUT", ["-d", SERVICE_RANGE, "-j", "REJECT"]),
    ("nat", "POSTROUTING", ["-s", POD_RANGE, "!", "-d", POD_RANGE, "-j", "MASQUERADE"]),
)


@dataclass(frozen=True)
class Uplink:
    """The machine's default network interface.

    Attributes:
        address: the machine's address on this interface.
        mtu: largest packet in bytes.
    """

    address: str
    mtu: int


def uplink() -> Uplink:
    """Return the interface of the machine's default route.

    Raises:
        LocalClusterError: there is no default route.
    """
    routes = json.loads(run(["ip", "-json", "-4", "route", "show", "default"]))
    if not routes:
        raise LocalClusterError("this machine has no default route, so pods would have no network")
    device = routes[0]["dev"]
    (link,) = json.loads(run(["ip", "-json", "-4", "address", "show", "dev", device]))
    return Uplink(address=link["addr_info"][0]["local"], mtu=link["mtu"])


def open_network() -> bool:
    """Let packets pass between pods and the outside.

    Returns:
        Whether iptables sees packets between two pods.
    """
    _FORWARDING.write_text("1")
    for table, chain, rule in _RULES:
        words = [chain, *rule, "-m", "comment", "--comment", _COMMENT]
        if not succeeds(["iptables", "-w", "-t", table, "-C", *words]):
            run(["iptables", "-w", "-t", table, "-I", *words])
    if not _BRIDGE_FILTER.exists() and not succeeds(["modprobe", "br_netfilter"]):
        return False
    _BRIDGE_FILTER.write_text("1")
    return True


def close_network() -> None:
    """Remove the bridge and all packet rules of the cluster."""
    if Path(f"/sys/class/net/{BRIDGE}").exists():
        run(["ip", "link", "delete", BRIDGE])
    for family in ("iptables", "ip6tables"):
        if not succeeds([f"{family}-save"]):
            continue  # a kernel without IPv6
        script = removal(run([f"{family}-save"]))
        if script:
            run([f"{family}-restore", "-w", "--noflush"], stdin=script)


def removal(saved: str) -> str:
    """Return a script for `iptables-restore --noflush` that removes the cluster's rules.

    Args:
        saved: output of `iptables-save`.

    Returns:
        The script; empty if there are no such rules.
    """
    script: list[str] = []
    for table, lines in _tables(saved).items():
        chains = [
            name
            for line in lines
            if line.startswith(":") and (name := line[1:].split()[0]).startswith(_KUBERNETES_CHAIN)
        ]
        rules = [line for line in lines if _is_ours(line)]
        if chains or rules:
            script += [f"*{table}"]
            script += [line.replace("-A ", "-D ", 1) for line in rules]
            script += [f"-F {chain}" for chain in chains]
            script += [f"-X {chain}" for chain in chains]  # after -F: chains refer to each other
            script += ["COMMIT"]
    return "".join(f"{line}\n" for line in script)


def _is_ours(line: str) -> bool:
    if not line.startswith("-A ") or line.startswith(f"-A {_KUBERNETES_CHAIN}"):
        return False  # the chains are emptied as a whole
    return f"-j {_KUBERNETES_CHAIN}" in line or f"--comment {_COMMENT}" in line


def _tables(saved: str) -> dict[str, list[str]]:
    tables: dict[str, list[str]] = {}
    name = ""
    for line in saved.splitlines():
        if line.startswith("*"):
            name = line[1:]
            tables[name] = []
        elif line.startswith((":", "-A ")):
            tables[name].append(line)
    return tables
