"""The kinds of objects that Sluice reads and writes, and where the Kubernetes API has them.

Objects are the plain mappings that the API speaks in: Sluice reads and writes few fields of few
kinds, and the models of its own kinds are in `sluice.api`.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from sluice.api.fields.common import GROUP, VERSION
from sluice.api.registry import DRIVEN, KINDS
from sluice.errors import InvalidSpec

_SEGMENT: Final = re.compile(r"[a-z0-9](?:[a-z0-9.:-]{0,251}[a-z0-9])?")
"""A part of a path: a name by DNS-1123, or one with colons, as some kinds have."""

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

    def collection(self, namespace: str | None) -> str:
        """Give the path of the objects of a namespace, or of all of them for None or nothing.

        Raises:
            InvalidSpec: no namespace, or no kind, can be called so.
        """
        inside = ("namespaces", namespace) if namespace else ()
        return path_of(*root(self.group, self.version), *inside, self.plural)

    def object(self, namespace: str | None, name: str, subresource: str = "") -> str:
        """Give the path of an object, or of a subresource of it.

        Raises:
            InvalidSpec: no object can be called so.
        """
        inside = ("namespaces", namespace) if namespace else ()
        rest = (subresource,) if subresource else ()
        return path_of(*root(self.group, self.version), *inside, self.plural, name, *rest)


def path_of(*segments: str) -> str:
    """Join the segments of a path of the API; the one place where names get into a URL.

    Names come from what tenants write, and clients normalise: `..` would lead into another
    namespace, `?` into a query. So a segment that is no name of Kubernetes' is refused.

    Raises:
        InvalidSpec: a segment is no such name.
    """
    for segment in segments:
        if not _SEGMENT.fullmatch(segment):
            raise InvalidSpec(
                f"{segment[:80]!r} is no name of an object of Kubernetes",
                remedy="Write a name: lower-case letters, digits, - and . between them.",
            )
    return "/" + "/".join(segments)


def root(group: str, version: str) -> tuple[str, ...]:
    """Give the segments of an API version's path; those of the core group for no group."""
    return ("apis", group, version) if group else ("api", version)


OWN: Final = {kind.name: Kind(GROUP, VERSION, kind.plural, kind.name) for kind in KINDS}
"""Our own kinds, by name."""

COPIES: Final = {kind.name: OWN[kind.name] for kind in DRIVEN}
"""Those that drivers work for."""

STREAM_COPY: Final = OWN["StreamCopy"]
SCOPE_COPY: Final = OWN["ScopeCopy"]
STREAM_ARCHIVE: Final = OWN["StreamArchive"]
STREAM_STORE: Final = OWN["StreamStore"]
EPHEMERAL_STREAM: Final = OWN["EphemeralStream"]
JOB: Final = Kind("batch", "v1", "jobs", "Job")
POD: Final = Kind("", "v1", "pods", "Pod")
CONFIG_MAP: Final = Kind("", "v1", "configmaps", "ConfigMap")
SECRET: Final = Kind("", "v1", "secrets", "Secret")
CLAIM: Final = Kind("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
EVENT: Final = Kind("", "v1", "events", "Event")
NAMESPACE: Final = Kind("", "v1", "namespaces", "Namespace")
