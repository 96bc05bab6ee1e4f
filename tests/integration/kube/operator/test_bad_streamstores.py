"""StreamStores with an unusable spec: each is refused, or its condition names the fault."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, Final

import pytest

from localcluster import LocalClusterError
from localstore.certificates import Authority
from support.cases.bad_stores import BAD, BadStore
from support.kube.objects import objects_in
from support.wire.tls_front import TLSFront
from support.wire.tls_names import serving

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from localstore import Standalone
    from support.cluster.local_operator import LocalOperator
    from support.tenants.desk import Desk

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(600)]

MARK: Final = "k9-marked-password"
"""A secret text, which must be in no message."""


def _body(number: int, bad: BadStore, addresses: dict[str, str]) -> dict[str, Any]:
    """Return a StreamStore."""
    text = json.dumps(bad.spec)
    for word, address in addresses.items():
        text = text.replace(f'"{word}"', json.dumps(address))
    return {
        "apiVersion": "sluice.dev/v1alpha1",
        "kind": "StreamStore",
        "metadata": {"name": bad.name or f"bad-{number}"},
        "spec": json.loads(text),
    }


def _refusal(desk: Desk, body: dict[str, Any]) -> str:
    """Return the API server's refusal of a resource; empty if it is accepted."""
    tenant = desk.tenant
    try:
        objects_in(tenant.cluster).create(tenant.namespace, body)
    except LocalClusterError as error:
        return str(error)
    return ""


def _said(desk: Desk, name: str) -> str:
    """Return reason and message of a StreamStore that is not ready; empty if it is ready."""
    condition = desk.tenant.condition(name, resource="sst")
    if condition.get("status") not in {"False", "Unknown"}:
        return ""
    return f"{condition['reason']}: {condition['message']}"


def test_a_bad_streamstore_says_which_field_is_wrong_and_makes_nothing(
    desk: Desk,
    local_operator: LocalOperator,
    standalone: Standalone,
    tmp_path: Path,
    say: Callable[[str], None],
) -> None:
    """Each bad StreamStore names its wrong field. No Secret is held or disclosed for it."""
    tenant = desk.tenant
    tenant.apply(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "half"},
            "stringData": {"username": MARK, "tls.crt": MARK},
        },
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "garbage"},
            "data": {"ca.crt": "no certificate"},
        },
    )
    desk.until_reason("sst", "store", "Reachable")
    before = tenant.objects()
    context = serving(Authority(tmp_path).issue("server", "127.0.0.1"))
    context.set_alpn_protocols(["h2"])
    waits: dict[str, float] = {}
    with TLSFront(context) as front:
        front.backend = standalone.controller
        addresses = {
            "PLAIN": standalone.controller_uri,
            "SECURED": f"tls://127.0.0.1:{front.port}",
            "PRETENDED": standalone.controller_uri.replace("tcp:", "tls:"),
        }
        taken = {}
        for number, (what, bad) in enumerate(BAD.items()):
            body = _body(number, bad, addresses)
            refusal = _refusal(desk, body)
            if bad.refused:
                assert bad.says in refusal, f"{what}: {refusal or 'it is taken'}"
                continue
            assert not refusal, f"{what}: {refusal}"
            taken[what] = body["metadata"]["name"], time.monotonic()
        for what, (name, made) in taken.items():
            said = tenant.until(f"{what} is said", lambda name=name: _said(desk, name))
            waits[what] = time.monotonic() - made
            assert BAD[what].says in said, f"{what}: {said}"
        slowest = max(waits, key=waits.__getitem__)
        say(
            f"  {len(BAD) - len(waits)} refused; {len(waits)} told of, the last one"
            f" ({slowest}) after {waits[slowest]:.1f} s"
        )
        assert tenant.objects() == before | {f"StreamStore/{name}" for name, _ in taken.values()}
        half = tenant.get("secret", "half")
        assert half is not None
        assert "finalizers" not in half["metadata"]
        texts = json.dumps(tenant.get_all("sst") + tenant.get_all("events"))
        assert MARK not in texts + local_operator.operator.log()
        tenant.run("delete", "sst", *(name for name, _ in taken.values()))
