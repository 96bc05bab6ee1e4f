"""The operator's connections to a store whose certificates change."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from sluice.config import Settings
from sluice.core.values.model import StoreAddress
from sluice.errors import CertificateRejected, InvalidSpec
from sluice.kube.api.kinds import CONFIG_MAP
from sluice.kube.stores.connections import Connections
from support.kube.api_server import ApiServer
from support.store.controllers import HOST, controller
from support.wire.tls_names import TLSNames

if TYPE_CHECKING:
    from pathlib import Path

    from localstore.certificates import Authority
    from sluice.stores.base import Store


def test_the_operator_takes_the_bundle_as_it_is_when_it_uses_the_store(tmp_path: Path) -> None:
    """A wrong bundle is refused at once with its field, and a right one is used at once."""
    names = TLSNames(tmp_path)
    server = ApiServer()

    def publish(text: str) -> None:
        meta = {"name": "trust", "namespace": "team"}
        server.put(CONFIG_MAP, {"metadata": meta, "data": {"ca.crt": text}})

    def of(authority: Authority) -> str:
        return authority.bundle.read_text()

    async def story(uri: str) -> None:
        address = StoreAddress(uri=uri, ca="_trust/ca.crt")
        connections = Connections(server.api, Settings())

        async def asked() -> tuple[Store, bool]:
            store = await connections.get("team", address)
            return store, await asyncio.to_thread(store.scope_exists, "any")

        publish(of(names.other()))
        with pytest.raises(CertificateRejected) as caught:
            await asked()
        assert caught.value.field == "spec.pravega.tls.caBundleRef"
        publish("nothing")
        with pytest.raises(InvalidSpec) as refused:
            await asked()
        assert refused.value.field == "spec.pravega.tls.caBundleRef"
        publish(of(names.authority))
        first, known = await asked()
        assert known
        publish(of(names.other()) + of(names.authority))
        second, known = await asked()
        assert known
        assert first is not second
        assert (await asked())[0] is second
        publish(of(names.other()))
        with pytest.raises(CertificateRejected):
            await asked()
        connections.close()

    with controller(names.certificate(HOST)) as port:
        asyncio.run(story(f"tls://{HOST}:{port}"))
