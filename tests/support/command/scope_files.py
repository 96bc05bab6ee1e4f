"""ScopeCopies to archives and from them, in files for the `sluice` command."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import yaml

from support.command.scope_command import resource, store_resource
from support.command.sluice_command import Filed

if TYPE_CHECKING:
    from pathlib import Path

    from support.command.sluice_command import Finished

PATH = "shop/daily"


@dataclass
class ScopeFile(Filed):
    """A ScopeCopy in a file, and the StreamStores that it names.

    Args:
        folder: directory of the file, the volumes and the credentials.
        uri: the live store's address.
        backend: backend of the archives' store, as YAML has it.
        name: the resource's name.
        scope: the scope that is archived, or restored to.
        restores: whether the scope is restored to.
        path: path of the archives' folder.
        spec: further fields of the spec, as YAML has them.
    """

    log_level = "info"

    folder: Path
    uri: str
    backend: dict[str, object]
    name: str
    scope: str
    restores: bool = False
    path: str = PATH
    spec: dict[str, Any] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:  # type: ignore[override]
        """The variables by which the command finds volumes and credentials."""
        return {
            "SLUICE_VOLUMES_DIR": str(self.folder / "volumes"),
            "SLUICE_CREDENTIALS_DIR": str(self.folder / "credentials"),
        }

    @property
    def file(self) -> Path:
        """The file, written anew."""
        live: dict[str, Any] = {"storeRef": {"name": "local"}, "scope": self.scope}
        archives = {"archive": {"storeRef": {"name": "backup"}, "path": self.path}}
        sides = (archives, live) if self.restores else (live, archives)
        ends = dict(zip(("source", "target"), sides, strict=True))
        if self.restores:
            live["scopePolicy"] = "CreateIfAbsent"
        resources = [
            store_resource("local", self.uri),
            resource("StreamStore", "backup", self.backend),
            resource("ScopeCopy", self.name, ends | self.spec),
        ]
        path = self.folder / f"{self.name}.yaml"
        path.write_text(yaml.safe_dump_all(resources))
        return path

    @property
    def place(self) -> Path:
        """The directory of the archives in the volume."""
        return self.folder / "volumes" / "backups" / "streams" / self.path

    def states(self, *options: str, code: int = 0) -> dict[str, str]:
        """Run the copy, and return each stream's state, or its reason if it failed.

        Args:
            options: options of the command.
            code: the exit code that is expected.
        """
        return states(self.run("run", "-o", "json", *options), code)


def states(finished: Finished, code: int = 0) -> dict[str, str]:
    """Return the state of each stream of a command's only copy, or its reason if it failed."""
    assert finished.code == code, finished.err
    (found,) = finished.json
    return {
        one["stream"]: one["trouble"]["reason"] if one["trouble"] else one["state"]
        for one in found["streams"]
    }
