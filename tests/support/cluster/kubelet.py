"""A stand-in for a kubelet: it runs a driver's pod as a process of this machine.

The operator's Job has made the pod at a real API server. No node runs the pod, because its profile
selects none. This module does the work of a kubelet: files from ConfigMaps and Secrets, claims, the
container's command line and environment, and the pod's status.
"""

from __future__ import annotations

import base64
import json
import os
import re
import sys
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from support.command import warm
from support.until import PATIENCE

if TYPE_CHECKING:
    from support.tenants.tenant import Tenant

Object = dict[str, Any]

_FOLDERS = ("/etc/sluice", "/var/run/sluice")
"""The directories in which containers find mounted files."""

_NAMES = {"POD_NAME": "name", "POD_NAMESPACE": "namespace", "POD_UID": "uid"}
"""Variables that have a field of the pod's metadata."""

PROFILES = {"default": {"nodeSelector": {"sluice.dev/taken-by": "nobody"}, "catchUpFrom": "4Mi"}}
"""Profiles of an operator whose pods this module runs."""


class DriverPod:
    """A driver's pod, and its process.

    Args:
        tenant: the pod's namespace.
        pod: the pod, while it waits for a node.
        folder: directory for its files.
        volumes: directory of the claims, each under its name.

    Attributes:
        process: the driver's process.
        log: the file with the driver's output.
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
        self._secrets = [
            (Path(self._here(mount["mountPath"], folder)), volume["secret"])
            for volume in pod["spec"]["volumes"]
            for mount in self._container["volumeMounts"]
            if "secret" in volume and mount["name"] == volume["name"]
        ]
        self.log = folder / "driver.log"
        own = {name: self._here(value, folder) for name, value in self._environment(pod).items()}
        with self.log.open("ab") as log:
            self.process = warm.Popen(
                [Path(sys.executable).with_name(program), *arguments],
                env=os.environ
                | own
                | {"SLUICE_TERMINATION_LOG": str(self._message), "HOME": str(folder)},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._report("Running", {"running": {"startedAt": self._started}})

    def close(self) -> None:
        """Leave nothing running."""
        self.process.kill()
        self.process.wait()

    def finish(self, seconds: float = PATIENCE) -> int:
        """Wait for the end of the process, report it, and return its exit code."""
        code = self.process.wait(seconds)
        ended = {
            "exitCode": code,
            "message": self._message.read_text() if self._message.exists() else "",
            "startedAt": self._started,
            "finishedAt": _now(),
        }
        self._report("Failed" if code else "Succeeded", {"terminated": ended})
        return code

    def stop(self) -> None:
        """Wait until the pod is deleted, and end its process as a kubelet does."""
        gone = partial(self._tenant.get, "pod", self._name)
        self._tenant.until(f"pod {self._name} is deleted", lambda: gone() is None)
        self.process.terminate()
        self.process.wait(PATIENCE)

    def refresh(self) -> None:
        """Write the Secrets into the files anew, as a kubelet does within a minute or two."""
        for path, volume in self._secrets:
            self._write(path, self._of_secret(volume))

    def _of_secret(self, volume: Object) -> dict[str, bytes]:
        """Return the files of a volume with a Secret."""
        found = self._tenant.get("secret", volume["secretName"])
        assert found is not None
        keys = [one["key"] for one in volume["items"]]
        return {key: base64.b64decode(found["data"][key]) for key in keys}

    def _config_map(self, name: str) -> Object | None:
        """Return a ConfigMap of the pod's namespace, if it is there."""
        return self._tenant.get("configmap", name)

    def _environment(self, pod: Object) -> dict[str, str]:
        """Return the container's variables. The pod's names come first: values refer to them."""
        found = {name: str(pod["metadata"].get(key, "")) for name, key in _NAMES.items()}
        for one in self._container["env"]:
            if "value" in one:
                found[one["name"]] = re.sub(
                    r"\$\((\w+)\)", lambda match: found.get(match[1], match[0]), one["value"]
                )
        return found

    def _mount(self, pod: Object, folder: Path, volumes: Path | None) -> None:
        """Write the pod's ConfigMaps and Secrets into files, and link its claims."""
        places = {one["name"]: one["mountPath"] for one in self._container["volumeMounts"]}
        for volume in pod["spec"]["volumes"]:
            path = Path(self._here(places[volume["name"]], folder))
            if "configMap" in volume:
                name = volume["configMap"]["name"]
                # A kubelet waits, too. For a driver beside a login, the operator makes the Job
                # first.
                found = self._tenant.until(f"{name} is there", partial(self._config_map, name))
                assert found is not None
                files = {name: text.encode() for name, text in found["data"].items()}
                packed = found.get("binaryData", {}).items()
                self._write(path, files | {name: base64.b64decode(data) for name, data in packed})
            elif "secret" in volume:
                self._write(path, self._of_secret(volume["secret"]))
            elif "persistentVolumeClaim" in volume:
                assert volumes is not None
                claim = volumes / volume["persistentVolumeClaim"]["claimName"]
                claim.mkdir(exist_ok=True)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.symlink_to(claim)

    @staticmethod
    def _write(folder: Path, files: dict[str, bytes]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            (folder / name).write_bytes(data)

    @staticmethod
    def _here(word: str, folder: Path) -> str:
        """Return a word of the container's spec, with directories of this machine."""
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
