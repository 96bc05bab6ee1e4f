"""An API server in memory for code that goes through all namespaces while other clients act."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from support.kube.api_server import ApiServer

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluice.kube.api.kinds import Kind, Object


class FinalizingServer(ApiServer):
    """An ApiServer with shorthands for finalizers.

    Attributes:
        meanwhile: callback before each list: the actions of other clients at that time.
    """

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: Callable[[], None] = lambda: None

    async def __aenter__(self) -> Self:
        """See Api."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """See Api."""

    def finalizers(self, kind: Kind, name: str, namespace: str = "default") -> list[str] | None:
        """Return an object's finalizers; None if it is gone."""
        body = self.body(kind, name, namespace)
        return None if body is None else body["metadata"].get("finalizers", [])

    def free(self, kind: Kind, name: str, finalizer: str, namespace: str = "default") -> None:
        """Remove a finalizer, as the operator does."""
        left = [one for one in self.finalizers(kind, name, namespace) or () if one != finalizer]
        self.edit(kind, name, namespace, metadata={"finalizers": left})

    async def list(self, kind: Kind, namespace: str | None, **wanted: Any) -> list[Object]:
        """See Api.list."""
        self.meanwhile()
        return await super().list(kind, namespace, **wanted)
