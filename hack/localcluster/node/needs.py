"""The missing requirements of our own cluster."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from localcluster import tools
from localcluster.errors import LocalClusterError
from localcluster.packages import is_debian, missing_packages
from localcluster.toolchain import programs

_GIGABYTE = 1 << 30

# Measured with empty caches on two cores.
_COMPILE_MINUTES, _COMPILE_GIGABYTES = 10, 4
_BASE_MINUTES, _BASE_GIGABYTES = 1, 1
_ROOM_GIGABYTES = 3  # for images and the pods' data


@dataclass(frozen=True)
class Needs:
    """The missing requirements.

    Attributes:
        packages: Debian packages.
        compile: whether Kubernetes has to be compiled.
        helm: whether Helm has to be compiled.
        base: whether the base image has to be made.
    """

    packages: tuple[str, ...]
    compile: bool
    helm: bool
    base: bool

    @classmethod
    def find(cls, *, base: bool) -> "Needs":
        """Find the missing requirements.

        Args:
            base: whether the base image has to be made.
        """
        return cls(
            packages=tuple(missing_packages()),
            compile=not programs().there,
            helm=not tools.helm_folder().is_dir(),
            base=base,
        )

    @property
    def gigabytes(self) -> int:
        """The disk space in GB that must be free at the start."""
        return _ROOM_GIGABYTES + self.compile * _COMPILE_GIGABYTES + self.base * _BASE_GIGABYTES

    def lines(self) -> list[str]:
        """Return lines for people; none if nothing takes long."""
        lines = []
        if self.packages:
            lines.append(f"install Debian packages with apt: {' '.join(self.packages)}")
        if self.compile:
            lines.append(
                f"compile Kubernetes with Go: about {_COMPILE_MINUTES} minutes on two cores, "
                f"{_COMPILE_GIGABYTES} GB in Go's caches"
            )
        if self.helm:
            lines.append("compile Helm, from much of the same: seconds")
        if self.base:
            lines.append(f"make a base image with mmdebstrap: about {_BASE_MINUTES} minute")
        if lines:
            lines = ["our own one-node Kubernetes (as root, on Debian). Once it has to", *lines]
            lines.append(f"in all {self.gigabytes} GB of disk; images are built meanwhile")
        return [lines[0], *(f"  - {line}" for line in lines[1:])] if lines else []

    def check(self, folder: Path) -> None:
        """Check that this machine meets the requirements.

        Args:
            folder: folder that needs most of the space.

        Raises:
            LocalClusterError: it does not; the message names alternatives.
        """
        other = "; or start docker and install kind, or set SLUICE_KUBECONFIG to use another one"
        if os.geteuid() != 0 and shutil.which("docker") and shutil.which("kind"):
            raise LocalClusterError(
                "docker does not answer: start it, or have your user added to its group, for kind; "
                "our own cluster needs root"
            )
        if os.geteuid() != 0:
            raise LocalClusterError(f"our own cluster needs root: use sudo{other}")
        if not is_debian():
            raise LocalClusterError(f"our own cluster needs Debian 12{other}")
        while not folder.exists():
            folder = folder.parent
        free = shutil.disk_usage(folder).free // _GIGABYTE
        if free < self.gigabytes:
            raise LocalClusterError(
                f"{self.gigabytes} GB of disk are needed at {folder}, and {free} GB are free{other}"
            )
