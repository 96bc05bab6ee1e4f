"""The kinds of objects that Sluice reads and writes, and where the Kubernetes API has them.

Objects are the plain mappings that the API speaks in: Sluice reads and writes few fields of few
kinds, and the models of its own kinds are in `sluice.api`.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from sluice.api.common import GROUP, VERSION

Object = dict[str, Any]
"""An object of the API, as JSON has it."""


class Kind(NamedTuple):
    """Where a kind's objects are."""

    group: str
    version: str
    plural: str
    name: str

    @property
    def api_version(self) -> str:
        """As `apiVersion` has it."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str | None, name: str = "", subresource: str = "") -> str:
        """The path of a collection, an object or a subresource."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        inside = f"/namespaces/{namespace}" if namespace else ""
        rest = "/".join(part for part in (self.plural, name, subresource) if part)
        return f"{root}{inside}/{rest}"


STREAM_COPY: Final = Kind(GROUP, VERSION, "streamcopies", "StreamCopy")
SCOPE_COPY: Final = Kind(GROUP, VERSION, "scopecopies", "ScopeCopy")
STREAM_ARCHIVE: Final = Kind(GROUP, VERSION, "streamarchives", "StreamArchive")
STREAM_STORE: Final = Kind(GROUP, VERSION, "streamstores", "StreamStore")
EPHEMERAL_STREAM: Final = Kind(GROUP, VERSION, "ephemeralstreams", "EphemeralStream")
JOB: Final = Kind("batch", "v1", "jobs", "Job")
POD: Final = Kind("", "v1", "pods", "Pod")
CONFIG_MAP: Final = Kind("", "v1", "configmaps", "ConfigMap")
SECRET: Final = Kind("", "v1", "secrets", "Secret")
CLAIM: Final = Kind("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
EVENT: Final = Kind("", "v1", "events", "Event")
NAMESPACE: Final = Kind("", "v1", "namespaces", "Namespace")

COPIES: Final = {kind.name: kind for kind in (STREAM_COPY, SCOPE_COPY, STREAM_ARCHIVE)}
"""The kinds that drivers work for, by name."""
