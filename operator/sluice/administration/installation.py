"""Check an installation from the inside: the kinds, the operator, and its rights.

Right after an installation some of it takes a moment. So all checks are repeated until they pass.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from typing import TYPE_CHECKING, Final, NamedTuple

import aiohttp

from sluice.api.fields.common import GROUP, VERSION
from sluice.api.registry import KINDS
from sluice.errors import ApiUnavailable
from sluice.kube.api.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sluice.kube.api.client import Api

POLL_SECONDS: Final = 1.0
PROBE_SECONDS: Final = 5.0
"""Deadline of a request to the operator."""
MOST_BYTES: Final = 500
"""How much of the operator's answer is shown."""
AT_ONCE: Final = 8
"""Questions to the API server at once."""

_GROUP, _VERSION = "authorization.k8s.io", "v1"
REVIEW: Final = Kind(_GROUP, _VERSION, "subjectaccessreviews", "SubjectAccessReview")
LOCAL_REVIEW: Final = Kind(
    _GROUP, _VERSION, "localsubjectaccessreviews", "LocalSubjectAccessReview"
)

_OK: Final = 200


class Right(NamedTuple):
    """A right, as a rule of RBAC grants it.

    Attributes:
        group: the API group; empty for the core group.
        resource: the resource, with its subresource after a slash.
        verb: the verb.
        name: the only object that it is about; empty for all.
    """

    group: str
    resource: str
    verb: str
    name: str

    def __str__(self) -> str:
        """Return the right as `kubectl auth can-i` takes it."""
        resource, slash, subresource = self.resource.partition("/")
        group = f".{self.group}" if self.group else ""
        only = f" {self.name}" if self.name else ""
        return f"{self.verb} {resource}{group}{slash}{subresource}{only}"


class ServiceAccount(NamedTuple):
    """A ServiceAccount."""

    namespace: str
    name: str

    @property
    def user(self) -> str:
        """The name under which the API server knows it."""
        return f"system:serviceaccount:{self.namespace}:{self.name}"

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups in which the API server has it."""
        accounts = "system:serviceaccounts"
        return accounts, f"{accounts}:{self.namespace}", "system:authenticated"


def rights_of(rules: Sequence[Mapping[str, Sequence[str]]]) -> Iterator[Right]:
    """Yield the single rights that rules of RBAC grant.

    Raises:
        KeyError: a rule lacks its groups, resources or verbs.
    """
    for rule in rules:
        names = rule.get("resourceNames") or [""]
        parts = (rule["apiGroups"], rule["resources"], rule["verbs"], names)
        yield from itertools.starmap(Right, itertools.product(*parts))


class Installation:
    """The checks of an installation.

    Args:
        api: the API server.
        probe: the URL at which the operator tells whether it is ready.
        account: the operator's ServiceAccount.
        rights: the rights that it needs.
        own_rights: those that it needs in its own namespace only.
        namespaces: the namespaces in which it needs them; the whole cluster if there are none.
    """

    def __init__(
        self,
        api: Api,
        *,
        probe: str,
        account: ServiceAccount,
        rights: Sequence[Right],
        own_rights: Sequence[Right],
        namespaces: Sequence[str],
    ) -> None:
        self._api = api
        self._probe = probe
        self._account = account
        self._rights = rights
        self._own_rights = own_rights
        self._namespaces = namespaces
        self._slots = asyncio.Semaphore(AT_ONCE)

    async def problems(self, seconds: float) -> list[str]:
        """Check everything until all is well, for some seconds at most. Return what is not well."""
        deadline = time.monotonic() + seconds
        while True:
            found = await self._look()
            if not found or time.monotonic() + POLL_SECONDS > deadline:
                return found
            await asyncio.sleep(POLL_SECONDS)

    async def _look(self) -> list[str]:
        """Return what is not well now."""
        try:
            return [*await self._kinds(), *await self._operator(), *await self._missing_rights()]
        except ApiUnavailable as error:
            return [str(error)]

    async def _kinds(self) -> list[str]:
        """Return the kinds that the API server does not serve."""
        served = {one["name"] for one in await self._api.resources(f"{GROUP}/{VERSION}")}
        remedy = "install the CRDs (crds.install, or manifests/crds.yaml)"
        return [
            f"the API server does not serve {kind.plural}.{GROUP}: {remedy}"
            for kind in KINDS
            if kind.plural not in served
        ]

    async def _operator(self) -> list[str]:
        """Return why the operator is not ready."""
        timeout = aiohttp.ClientTimeout(total=PROBE_SECONDS)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout) as session,
                session.get(self._probe, allow_redirects=False) as answer,
            ):
                text = (await answer.content.read(MOST_BYTES)).decode(errors="replace").strip()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            why = str(error) or "time-out"
            remedy = "look at its pod's log, and at network policies"
            return [f"the operator does not answer at {self._probe}: {why}; {remedy}"]
        if answer.status == _OK:
            return []
        return [f"the operator is not ready: {text or answer.status}; look at its pod's log"]

    async def _missing_rights(self) -> list[str]:
        """Return the rights that the operator's account lacks."""
        places = self._namespaces or ("",)
        asked = [(place, right) for place in places for right in self._rights]
        asked += [(self._account.namespace, right) for right in self._own_rights]
        allowed = await asyncio.gather(*(self._allowed(*question) for question in asked))
        remedy = "look at the chart's roles and bindings"
        return [
            f"{self._account.user} may not {right}{f' in {place}' if place else ''}: {remedy}"
            for (place, right), yes in zip(asked, allowed, strict=True)
            if not yes
        ]

    async def _allowed(self, namespace: str, right: Right) -> bool:
        """Tell whether the API server grants the account a right. An empty namespace means all."""
        resource, _, subresource = right.resource.partition("/")
        # The test of a release for few namespaces may ask in these only.
        where = namespace if self._namespaces else ""
        kind = LOCAL_REVIEW if where else REVIEW
        attributes = {
            "group": right.group,
            "resource": resource,
            "subresource": subresource,
            "verb": right.verb,
            "name": right.name,
            "namespace": namespace,
        }
        body = {
            "apiVersion": kind.api_version,
            "kind": kind.name,
            "metadata": {"namespace": where} if where else {},
            "spec": {
                "user": self._account.user,
                "groups": list(self._account.groups),
                "resourceAttributes": attributes,
            },
        }
        async with self._slots:
            answer = await self._api.create(kind, where, body)
        return bool(((answer or {}).get("status") or {}).get("allowed"))
