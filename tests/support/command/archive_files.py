"""StreamArchives in a file, for the command."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from support.command import warm
from support.command.sluice_command import Filed, Finished, finish

if TYPE_CHECKING:
    from pathlib import Path


@dataclass
class ArchiveFile(Filed):
    """A StreamArchive in a file.

    Args:
        folder: directory of the file, the volumes and the credentials.
        uri: the source store's address.
        source: scope and stream.
        path: the archive's path.
        spec: further fields of the spec, as YAML has them.
        backend: backend of the archive's store, as YAML has it; a volume by default.
    """

    folder: Path
    uri: str
    source: tuple[str, str]
    path: str = "team/orders"
    spec: dict[str, object] = field(default_factory=dict)
    backend: dict[str, object] = field(
        default_factory=lambda: {"volume": {"claimName": "backups", "path": "streams"}}
    )

    def __post_init__(self) -> None:
        """Make the volume."""
        (self.folder / "volumes" / "backups").mkdir(parents=True, exist_ok=True)

    @property
    def environment(self) -> dict[str, str]:  # type: ignore[override]
        """The variables by which the command finds volumes and credentials."""
        return {
            "SLUICE_VOLUMES_DIR": str(self.folder / "volumes"),
            "SLUICE_CREDENTIALS_DIR": str(self.folder / "credentials"),
        }

    @property
    def place(self) -> Path:
        """The archive's directory in the volume."""
        return self.folder / "volumes" / "backups" / "streams" / self.path

    @property
    def file(self) -> Path:
        """The file, written anew."""
        scope, stream = self.source
        resources = [
            _resource("StreamStore", "local", {"pravega": {"controllerURI": self.uri}}),
            _resource("StreamStore", "backup", self.backend),
            _resource(
                "StreamArchive",
                "orders",
                {
                    "source": {"storeRef": {"name": "local"}, "scope": scope, "stream": stream},
                    "destination": {"storeRef": {"name": "backup"}, "path": self.path},
                    **self.spec,
                },
            ),
        ]
        path = self.folder / "archive.yaml"
        path.write_text("\n---\n".join(map(json.dumps, resources)))
        return path


def call(*words: str) -> Finished:
    """Run the command without a file."""
    return finish(
        warm.Popen([warm.SLUICE, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    )


def _resource(kind: str, name: str, spec: dict[str, object]) -> dict[str, object]:
    return {
        "apiVersion": "sluice.dev/v1alpha1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    }
