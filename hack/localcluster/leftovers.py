"""What pods leave behind when their keepers are gone: mounts, control groups, links to logs."""

import os
import re
from contextlib import suppress
from pathlib import Path

from localcluster.commands import run

_MOUNTS = Path("/proc/self/mounts")
_CGROUPS = Path("/sys/fs/cgroup")
_LOG_LINKS = Path("/var/log/containers")  # no setting moves them elsewhere
_OCTAL = re.compile(r"\\([0-7]{3})")


def unmount_below(*folders: Path) -> None:
    """Unmounts all that is mounted below the folders, even what is still in use."""
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
    """Reads the mount points in the kernel's list, which writes odd characters in octal."""
    return [
        Path(_OCTAL.sub(lambda match: chr(int(match[1], 8)), line.split()[1]))
        for line in mounts.splitlines()
    ]


def pod_cgroups() -> list[Path]:
    """Gives the control groups under which a kubelet keeps its pods, in each hierarchy."""
    return [*_CGROUPS.glob("kubepods"), *_CGROUPS.glob("*/kubepods")]


def remove_pod_cgroups() -> None:
    """Removes the control groups of pods; those that still hold a process stay."""
    for group in pod_cgroups():
        for folder, _, _ in os.walk(group, topdown=False):
            with suppress(OSError):
                Path(folder).rmdir()


def remove_log_links(state: Path) -> None:
    """Removes the kubelet's links to the logs of containers that are below a folder."""
    for link in _LOG_LINKS.glob("*.log"):
        if link.is_symlink() and link.readlink().is_relative_to(state):
            link.unlink()
