"""Decide who may see what: by one token for all, or by Kubernetes' own rules."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from collections import OrderedDict
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, Protocol, TypeVar

from sluice.administration.installation import REVIEW
from sluice.api.fields.common import GROUP
from sluice.errors import ApiUnavailable
from sluice.kube.api.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from sluice.kube.api.kinds import Object

_TOKEN_REVIEW: Final = Kind("authentication.k8s.io", "v1", "tokenreviews", "TokenReview")

AGAIN: Final = 30.0
"""Seconds for which an answer of Kubernetes about a token or a right counts."""

RESULTS: Final = "results"
"""The subresource of StreamQueries whose `get` allows to see rows."""

_MOST: Final = 4096
"""The most answers that are kept, and bytes of a token."""

_AT_A_TIME: Final = 8
"""The most calls at a time about tokens that were right before, and about rights."""

_STRANGERS: Final = 4
"""The most calls at a time about tokens that are not known. Any client may send one."""

_MOST_WAITING: Final = 64
"""The most unknown tokens that wait for such a call."""


class Ruling(StrEnum):
    """The answer to a caller."""

    ALLOWED = "Allowed"
    UNKNOWN = "Unknown"
    """The caller brings no token, or a wrong one."""
    FORBIDDEN = "Forbidden"
    """The caller lacks the right."""


class ViewRight(NamedTuple):
    """The right to see something, as RBAC has it.

    Attributes:
        verb: get or list.
        resource: the plural of the kind.
        namespace: the namespace; None for all.
        name: the object; empty for all.
        subresource: the subresource; empty for the object itself.
        group: the group of the kind.
    """

    verb: str
    resource: str
    namespace: str | None
    name: str = ""
    subresource: str = ""
    group: str = GROUP

    def __str__(self) -> str:
        """Return the right as `kubectl auth can-i` takes it."""
        group = f".{self.group}" if self.group else ""
        name = f"/{self.name}" if self.name else ""
        below = f" --subresource={self.subresource}" if self.subresource else ""
        place = "-A" if self.namespace is None else f"-n {self.namespace}"
        return f"{self.verb} {self.resource}{group}{name}{below} {place}"


class AccessRule(Protocol):
    """A rule about who may see what."""

    async def decide(self, token: str, right: ViewRight) -> Ruling:
        """Tell whether the bearer of a token has a right.

        Raises:
            ApiUnavailable: Kubernetes does not say.
        """
        ...


class OneToken:
    """All that the gateway may see, for everyone with the token.

    Args:
        token: the token, or the file that has it. A file is read at each call: Kubernetes replaces
            it when its Secret changes.
    """

    def __init__(self, token: str | Path) -> None:
        self._token = token

    async def decide(self, token: str, right: ViewRight) -> Ruling:  # noqa: ARG002 - as of AccessRule
        """Compare the token."""
        expected = self._token if isinstance(self._token, str) else self._read(self._token)
        given = token.encode(errors="surrogateescape")
        same = bool(expected) and secrets.compare_digest(given, expected.encode())
        return Ruling.ALLOWED if same else Ruling.UNKNOWN

    @staticmethod
    def _read(file: Path) -> str:
        try:
            with file.open(encoding="utf-8") as opened:
                return opened.read(_MOST).strip()
        except (OSError, ValueError) as error:
            raise ApiUnavailable(
                f"the gateway's token cannot be read: {error}",
                remedy="Check the Secret of the Helm value gateway.tokenSecret.",
            ) from error


class KubernetesAccess:
    """The rights that the bearer of a token of Kubernetes has there.

    Args:
        create: creates an object at the API server and returns it, with the answer in its status.
    """

    def __init__(self, create: Callable[[Kind, None, Object], Awaitable[Object | None]]) -> None:
        self._create = create
        self._users: _Answers[Object] = _Answers()
        self._wrong: _Answers[None] = _Answers()
        self._rights: _Answers[bool] = _Answers()
        self._turn = asyncio.Semaphore(_AT_A_TIME)
        self._strangers = asyncio.Semaphore(_STRANGERS)
        self._waiting = 0

    async def decide(self, token: str, right: ViewRight) -> Ruling:
        """Ask Kubernetes, or take its answer of the last half minute. ApiUnavailable."""
        if not 0 < len(token) <= _MOST:
            return Ruling.UNKNOWN
        key = hashlib.sha256(token.encode(errors="surrogateescape")).hexdigest()
        user = await self._user(key, token)
        if user is None:
            return Ruling.UNKNOWN
        allowed = await self._allowed(f"{key} {right}", user, right)
        return Ruling.ALLOWED if allowed else Ruling.FORBIDDEN

    async def _user(self, key: str, token: str) -> Object | None:
        """Return the bearer of a token; None for a wrong token."""
        kept = self._users.get(key)
        if kept is not None and kept.counts:
            return kept.value
        if kept is not None:
            return await self._reviewed(key, token, self._turn)
        wrong = self._wrong.get(key)
        if wrong is not None and wrong.counts:
            return None
        # Tokens that were never right wait apart, so that they hold up none that was.
        if self._waiting >= _MOST_WAITING:
            raise ApiUnavailable(
                "too many unknown tokens wait to be checked", remedy="Try again later."
            )
        self._waiting += 1
        try:
            return await self._reviewed(key, token, self._strangers)
        finally:
            self._waiting -= 1

    async def _reviewed(self, key: str, token: str, turn: asyncio.Semaphore) -> Object | None:
        status = await self._ask(_TOKEN_REVIEW, {"token": token}, turn)
        user = status.get("user")
        if status.get("authenticated") is not True or not isinstance(user, dict):
            self._users.drop(key)
            self._wrong.put(key, None)
            return None
        self._users.put(key, user)
        return user

    async def _allowed(self, key: str, user: Object, right: ViewRight) -> bool:
        kept = self._rights.get(key)
        if kept is not None and kept.counts:
            return kept.value
        spec = {
            "user": user.get("username"),
            "uid": user.get("uid"),
            "groups": user.get("groups"),
            "extra": user.get("extra"),
            "resourceAttributes": {
                "group": right.group,
                "verb": right.verb,
                "resource": right.resource,
                "subresource": right.subresource,
                "name": right.name,
                "namespace": right.namespace or "",
            },
        }
        status = await self._ask(REVIEW, spec, self._turn)
        allowed = status.get("allowed") is True
        self._rights.put(key, allowed)
        return allowed

    async def _ask(self, kind: Kind, spec: Object, turn: asyncio.Semaphore) -> Object:
        body = {"apiVersion": kind.api_version, "kind": kind.name, "spec": spec}
        async with turn:
            found = await self._create(kind, None, body)
        status = (found or {}).get("status")
        return status if isinstance(status, dict) else {}


_T = TypeVar("_T")


class _Answer(NamedTuple, Generic[_T]):
    """An answer, and the time at which it ends."""

    value: _T
    end: float

    @property
    def counts(self) -> bool:
        """Whether it still counts."""
        return time.monotonic() < self.end


class _Answers(Generic[_T]):
    """The last answers of Kubernetes, by question."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, _Answer[_T]] = OrderedDict()

    def get(self, key: str) -> _Answer[_T] | None:
        """Return the last answer, which may not count any more; None without one."""
        return self._kept.get(key)

    def put(self, key: str, value: _T) -> None:
        """Keep an answer. The oldest one goes if there are too many."""
        self._kept[key] = _Answer(value, time.monotonic() + AGAIN)
        self._kept.move_to_end(key)
        while len(self._kept) > _MOST:
            self._kept.popitem(last=False)

    def drop(self, key: str) -> None:
        """Forget an answer."""
        self._kept.pop(key, None)
