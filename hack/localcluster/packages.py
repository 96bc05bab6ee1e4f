"""Programs from Debian packages."""

import os
import shutil
from pathlib import Path

from localcluster.commands import run
from localcluster.errors import LocalClusterError

_SECONDS_TO_INSTALL = 900.0

# The programs that we or the components call, with their packages.
_NEEDED = {
    "containerd": "containerd",
    "runc": "runc",
    "/usr/lib/cni/bridge": "containernetworking-plugins",
    "iptables": "iptables",
    "conntrack": "conntrack",
    "ip": "iproute2",
    "openssl": "openssl",
    "buildah": "buildah",
    "skopeo": "skopeo",
    "mmdebstrap": "mmdebstrap",
    "/etc/ssl/certs/ca-certificates.crt": "ca-certificates",
}


def missing_packages() -> list[str]:
    """Return the packages that have to be installed."""
    return [package for needed, package in _NEEDED.items() if not _is_here(needed)]


def install(packages: list[str]) -> None:
    """Install packages.

    Raises:
        LocalClusterError: apt failed.
    """
    environment = {"DEBIAN_FRONTEND": "noninteractive"}
    run(["apt-get", "update", "-qq"], seconds=_SECONDS_TO_INSTALL, environment=environment)
    command = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages]
    run(command, seconds=_SECONDS_TO_INSTALL, environment=environment)


def archives(suite: str) -> list[str]:
    """Return the machine's own Debian archives as lines of a sources.list.

    Args:
        suite: the wanted release.

    Raises:
        LocalClusterError: the machine has no archive of this release.
    """
    query = ["apt-get", "indextargets", "--format", "$(ORIGIN) $(COMPONENT) $(REPO_URI) $(RELEASE)"]
    lines = _archive_lines(run([*query, "Created-By: Packages"]), suite)
    if not lines:  # apt knows an archive's origin only after it has downloaded its lists
        run(["apt-get", "update", "-qq"], seconds=_SECONDS_TO_INSTALL)
        lines = _archive_lines(run([*query, "Created-By: Packages"]), suite)
    if not lines:
        raise LocalClusterError(
            f"apt knows no archive of Debian {suite}, which images are made of: our own cluster "
            "needs Debian 12; elsewhere start docker and install kind, or set SLUICE_KUBECONFIG"
        )
    return lines


def is_debian() -> bool:
    """Tell whether this machine runs Debian."""
    release = Path("/etc/os-release")
    return release.exists() and "ID=debian" in release.read_text().splitlines()


def _archive_lines(targets: str, suite: str) -> list[str]:
    keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"
    lines = []
    for target in targets.splitlines():
        origin, component, uri, release = target.split()
        if origin == "Debian" and component == "main" and release.partition("-")[0] == suite:
            lines.append(f"deb [signed-by={keyring}] {uri} {release} main")
    return lines


def _is_here(needed: str) -> bool:
    if needed.startswith("/"):
        return Path(needed).exists()
    # Some programs for root are not on a normal user's PATH.
    path = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
    return shutil.which(needed, path=path) is not None
