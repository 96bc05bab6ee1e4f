"""The leftovers of pods after the kubelet's end: mounts, control groups, links to logs."""

import os
import re
from contextlib import suppress
from pathlib import Path

from localcluster.commands import run

_MOUNTS = Path("/proc/self/mounts")
_CGROUPS = Path("/sys/fs/cgroup")
_LOG_LINKS = Path("/var/log/containers")  # the kubelet has no setting for this path
_OCTAL = re.compile(r"\\([0-7]{3})")


def unmount_below(*folders: Path) -> None:
    """Unmount everything below the folders, even if it is still in use."""
    points = [
        point
        for folder in folders
        for point in mount_points(_MOUNTS.read_text())
        if point.is_relative_to(folder)
    ]
    if points:
        deepest_first = sorted(points, key=lambda point: len(point.parts), reverse=True)
        run(["umount", "--lazy", *deepest_first])


def mount_points(mounts: str) -> list[Path]:
    """Return the mount points of the kernel's list, which has special characters in octal."""
    return [
        Path(_OCTAL.sub(lambda match: chr(int(match[1], 8)), line.split()[1]))
        for line in mounts.splitlines()
    ]


def pod_cgroups() -> list[Path]:
    """Return the control groups of a kubelet's pods, in each hierarchy."""
    return [*_CGROUPS.glob("kubepods"), *_CGROUPS.glob("*/kubepods")]


def remove_pod_cgroups() -> None:
    """Delete the control groups of pods, except those that still have a process."""
    for group in pod_cgroups():
        for folder, _, _ in os.walk(group, topdown=False):
            with suppress(OSError):
                Path(folder).rmdir()


def remove_log_links(state: Path) -> None:
    """Delete the kubelet's links to logs of containers below a folder."""
    for link in _LOG_LINKS.glob("*.log"):
        if link.is_symlink() and link.readlink().is_relative_to(state):
            link.unlink()
