"""A node's part in a copy: a driver's pod, run as a process of this machine.

The pod is the one that the operator's Job has made at a real API server. No node takes it, for its
profile selects none; what a kubelet would do is done here: files from the ConfigMaps, the command
line and the environment of the container, the pod's status.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from support.tenant import Tenant

Object = dict[str, Any]

PROFILES = {"default": {"nodeSelector": {"sluice.dev/taken-by": "nobody"}}}
"""Of an operator whose pods are run here."""


class DriverPod:
    """A driver's pod, and its process.

    Args:
        tenant: its namespace.
        pod: the pod, as it waits for a node.
        folder: for its files.
    """

    def __init__(self, tenant: Tenant, pod: Object, folder: Path) -> None:
        self._tenant = tenant
        self._name = pod["metadata"]["name"]
        (self._container,) = pod["spec"]["containers"]
        self._message = folder / "termination-log"
        self._started = _now()
        program, *arguments = self._container["args"]
        for place, path in self._mounted(pod, folder).items():
            arguments = [word.replace(place, str(path)) for word in arguments]
        own = {one["name"]: one["value"] for one in self._container["env"] if "value" in one}
        self.process = subprocess.Popen(
            [Path(sys.executable).with_name(program), *arguments],
            env=os.environ
            | own
            | {"SLUICE_TERMINATION_LOG": str(self._message), "HOME": str(folder)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._report("Running", {"running": {"startedAt": self._started}})

    def close(self) -> None:
        """Leave nothing running."""
        self.process.kill()
        self.process.wait()

    def finish(self, seconds: float) -> int:
        """Wait for its end, and report it; its exit code."""
        code = self.process.wait(seconds)
        ended = {
            "exitCode": code,
            "message": self._message.read_text() if self._message.exists() else "",
            "startedAt": self._started,
            "finishedAt": _now(),
        }
        self._report("Failed" if code else "Succeeded", {"terminated": ended})
        return code

    def _mounted(self, pod: Object, folder: Path) -> dict[str, Path]:
        """Write its ConfigMaps down; where each lies by where the container would find it."""
        places = {one["name"]: one["mountPath"] for one in self._container["volumeMounts"]}
        mounted = {}
        for volume in pod["spec"]["volumes"]:
            if "configMap" not in volume:
                continue
            path = folder / volume["name"]
            path.mkdir()
            found = self._tenant.get("configmap", volume["configMap"]["name"])
            assert found is not None
            for name, text in found["data"].items():
                (path / name).write_text(text)
            mounted[places[volume["name"]]] = path
        return mounted

    def _report(self, phase: str, state: Object) -> None:
        """Write the pod's status."""
        container = {
            "name": self._container["name"],
            "image": self._container["image"],
            "imageID": "",
            "ready": phase == "Running",
            "restartCount": 0,
            "state": state,
        }
        status = {"status": {"phase": phase, "containerStatuses": [container]}}
        patch = ("--subresource=status", "--type=merge", f"--patch={json.dumps(status)}")
        self._tenant.run("patch", "pod", self._name, *patch)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
