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
        folder: where the file, the volumes and the credentials are.
        uri: the live store's address.
        backend: of the store with the archives, as YAML has it.
        name: of the resource.
        scope: that is archived, or restored to.
        restores: whether it is restored to.
        path: of the archives' folder.
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
        """Where the command finds volumes and credentials."""
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
        """Where the archives lie, of a volume."""
        return self.folder / "volumes" / "backups" / "streams" / self.path

    def states(self, *options: str, code: int = 0) -> dict[str, str]:
        """What a run says became of each stream, with the reason of those that failed.

        Args:
            options: of the command.
            code: the exit code that it has to have.
        """
        return states(self.run("run", "-o", "json", *options), code)


def states(finished: Finished, code: int = 0) -> dict[str, str]:
    """What a command says became of each stream of its only copy."""
    assert finished.code == code, finished.err
    (found,) = finished.json
    return {
        one["stream"]: one["trouble"]["reason"] if one["trouble"] else one["state"]
        for one in found["streams"]
    }
