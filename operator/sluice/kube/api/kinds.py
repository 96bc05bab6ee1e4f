"""The kinds of objects that Sluice reads and writes, and their paths in the Kubernetes API.

Objects are plain mappings, as in the API's JSON: Sluice uses few fields of few kinds. The models of
its own kinds are in `sluice.api`.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from sluice.api import registry
from sluice.api.fields.common import GROUP, VERSION
from sluice.api.registry import DRIVEN, KINDS
from sluice.errors import InvalidSpec

_SEGMENT: Final = re.compile(r"[a-z0-9](?:[a-z0-9.:-]{0,251}[a-z0-9])?")
"""A segment of a path: a DNS-1123 name, or a name with colons, as some kinds have."""

Object = dict[str, Any]
"""An object of the API, as JSON has it."""


class Kind(NamedTuple):
    """A kind of object, with the parts of its path in the API."""

    group: str
    version: str
    plural: str
    name: str

    @property
    def api_version(self) -> str:
        """The value of `apiVersion`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def collection(self, namespace: str | None) -> str:
        """Return the path of a namespace's objects; of all namespaces for None or an empty string.

        Raises:
            InvalidSpec: this is not a valid name of a namespace or a kind.
        """
        inside = ("namespaces", namespace) if namespace else ()
        return path_of(*root(self.group, self.version), *inside, self.plural)

    def object(self, namespace: str | None, name: str, subresource: str = "") -> str:
        """Return the path of an object, or of a subresource of it.

        Raises:
            InvalidSpec: this is not a valid name.
        """
        inside = ("namespaces", namespace) if namespace else ()
        rest = (subresource,) if subresource else ()
        return path_of(*root(self.group, self.version), *inside, self.plural, name, *rest)


def path_of(*segments: str) -> str:
    """Join the segments of a path of the API. Only this function puts names into a URL.

    Tenants write the names, and clients normalise paths: `..` would lead into another namespace,
    `?` into a query. So a segment that is not a valid name in Kubernetes is refused.

    Raises:
        InvalidSpec: a segment is not a valid name.
    """
    for segment in segments:
        if not _SEGMENT.fullmatch(segment):
            raise InvalidSpec(
                f"{segment[:80]!r} is no name of an object of Kubernetes",
                remedy="Write a name: lower-case letters, digits, - and . between them.",
            )
    return "/" + "/".join(segments)


def root(group: str, version: str) -> tuple[str, ...]:
    """Return the segments of an API version's path. An empty group is the core group."""
    return ("apis", group, version) if group else ("api", version)


OWN: Final = {kind.name: Kind(GROUP, VERSION, kind.plural, kind.name) for kind in KINDS}
"""Our own kinds, by name."""

COPIES: Final = {kind.name: OWN[kind.name] for kind in DRIVEN}
"""Our own kinds that drivers work for, by name."""

STREAM_QUERY: Final = OWN["StreamQuery"]

WITH_JOBS: Final = tuple(OWN[kind.name] for kind in registry.WITH_JOBS)
"""Our own kinds for which the operator makes Jobs."""

STREAM_COPY: Final = OWN["StreamCopy"]
SCOPE_COPY: Final = OWN["ScopeCopy"]
STREAM_ARCHIVE: Final = OWN["StreamArchive"]
STREAM_STORE: Final = OWN["StreamStore"]
EPHEMERAL_STREAM: Final = OWN["EphemeralStream"]
DEPLOYMENT: Final = Kind("apps", "v1", "deployments", "Deployment")
JOB: Final = Kind("batch", "v1", "jobs", "Job")
CRON_JOB: Final = Kind("batch", "v1", "cronjobs", "CronJob")
POD: Final = Kind("", "v1", "pods", "Pod")
CONFIG_MAP: Final = Kind("", "v1", "configmaps", "ConfigMap")
SECRET: Final = Kind("", "v1", "secrets", "Secret")
CLAIM: Final = Kind("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
EVENT: Final = Kind("", "v1", "events", "Event")
NAMESPACE: Final = Kind("", "v1", "namespaces", "Namespace")
LEASE: Final = Kind("coordination.k8s.io", "v1", "leases", "Lease")
