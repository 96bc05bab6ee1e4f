"""The small GitOps controller of gitops_program, run beside a test."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Self

import yaml

if TYPE_CHECKING:
    from support.tenants.tenant import Object, Tenant

_PROGRAM = Path(__file__).with_name("gitops_program.py")
_SECONDS = "0.5"  # as if it always looked at Git


class GitOps:
    """A controller that keeps resources in a namespace as Git has them, from its start to its stop.

    Args:
        tenant: the namespace.
        folder: directory for the manifests and the log.
        resources: the resources in Git.
    """

    def __init__(self, tenant: Tenant, folder: Path, *resources: Object) -> None:
        self._tenant = tenant
        self._manifests = folder / "manifests.yaml"
        self._manifests.write_text(yaml.safe_dump_all(resources))
        self._log = folder / "gitops.log"
        self._child: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        """Start the controller."""
        kubectl = self._tenant.cluster.kubectl_command(f"--namespace={self._tenant.namespace}")
        with self._log.open("wb") as log:
            self._child = subprocess.Popen(
                [sys.executable, str(_PROGRAM), str(self._manifests), _SECONDS, *kubectl],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the controller."""
        if self._child is not None:
            self._child.kill()
            self._child.wait()

    def rounds(self) -> int:
        """Return the number of comparisons so far."""
        return len(self._said())

    def changes(self) -> list[tuple[str, str]]:
        """Return its changes, in order: `created` or `configured`, and the resource's name."""
        said = self._said()
        assert not [one["error"] for one in said if one["error"]]
        return [(done, name) for one in said for done, name in one["changes"]]

    def compare(self, times: int) -> None:
        """Wait until it has compared `times` more times."""
        first = self.rounds() + 1  # one comparison may be under way
        self._tenant.until(
            f"Git was compared {times} times",
            lambda: self.rounds() >= first + times,
        )

    def _said(self) -> list[Object]:
        assert self._child is not None
        text = self._log.read_text()
        assert self._child.poll() is None, text
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]
