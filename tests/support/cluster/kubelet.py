"""A node's part in a copy: a driver's pod, run as a process of this machine.

The pod is the one that the operator's Job has made at a real API server. No node takes it, for its
profile selects none; what a kubelet would do is done here: files from ConfigMaps and Secrets,
claims, the command line and the environment of the container, the pod's status.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from support.cluster.tenant import Tenant

Object = dict[str, Any]

_FOLDERS = ("/etc/sluice", "/var/run/sluice")
"""Where containers find what is mounted for them."""

PROFILES = {"default": {"nodeSelector": {"sluice.dev/taken-by": "nobody"}}}
"""Of an operator whose pods are run here."""


class DriverPod:
    """A driver's pod, and its process.

    Args:
        tenant: its namespace.
        pod: the pod, as it waits for a node.
        folder: for its files.
        volumes: where claims are, each under its name.
    """

    def __init__(
        self, tenant: Tenant, pod: Object, folder: Path, volumes: Path | None = None
    ) -> None:
        self._tenant = tenant
        self._name = pod["metadata"]["name"]
        (self._container,) = pod["spec"]["containers"]
        self._message = folder / "termination-log"
        self._started = _now()
        program, *arguments = [self._here(word, folder) for word in self._container["args"]]
        self._mount(pod, folder, volumes)
        own = {
            one["name"]: self._here(one["value"], folder)
            for one in self._container["env"]
            if "value" in one
        }
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

    def _mount(self, pod: Object, folder: Path, volumes: Path | None) -> None:
        """Write its ConfigMaps and Secrets down, and link its claims to where they are."""
        places = {one["name"]: one["mountPath"] for one in self._container["volumeMounts"]}
        for volume in pod["spec"]["volumes"]:
            path = Path(self._here(places[volume["name"]], folder))
            if "configMap" in volume:
                found = self._tenant.get("configmap", volume["configMap"]["name"])
                assert found is not None
                files = {name: text.encode() for name, text in found["data"].items()}
                packed = found.get("binaryData", {}).items()
                self._write(path, files | {name: base64.b64decode(data) for name, data in packed})
            elif "secret" in volume:
                found = self._tenant.get("secret", volume["secret"]["secretName"])
                assert found is not None
                keys = [one["key"] for one in volume["secret"]["items"]]
                self._write(path, {key: base64.b64decode(found["data"][key]) for key in keys})
            elif "persistentVolumeClaim" in volume:
                assert volumes is not None
                claim = volumes / volume["persistentVolumeClaim"]["claimName"]
                claim.mkdir(exist_ok=True)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.symlink_to(claim)

    @staticmethod
    def _write(folder: Path, files: dict[str, bytes]) -> None:
        folder.mkdir(parents=True)
        for name, data in files.items():
            (folder / name).write_bytes(data)

    @staticmethod
    def _here(word: str, folder: Path) -> str:
        """A word of the container's, with its folders as they are here."""
        for place in _FOLDERS:
            word = word.replace(place, f"{folder}{place}")
        return word

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
