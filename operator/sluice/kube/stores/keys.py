"""Read logins, keys and certificates of stores from Secrets and ConfigMaps. None are logged."""

from __future__ import annotations

import base64
import binascii
import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from sluice.archive.objects.s3 import S3Keys
from sluice.core.workloads.request import CONFIG_MAPS
from sluice.errors import AccessDenied, SecretNotFound
from sluice.kube.api.kinds import CONFIG_MAP, SECRET
from sluice.stores.credentials import Credentials
from sluice.stores.trust import CLIENT_KEYS, ClientCertificate

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from sluice.core.values.model import StoreAddress
    from sluice.kube.api.client import Api
    from sluice.kube.api.kinds import Object

CONSENT_LABEL: Final = "sluice.dev/store"
"""Label of Secrets that StreamStores may use, where the administrator asks for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """The keys that open a store. Their `repr` is empty, so that they cannot get into a log.

    Attributes:
        login: user and password, or the two parts of a key; None if the address names no Secret.
        ca: certificates in PEM by which the store is trusted.
        client: the certificate that Sluice shows; None if the address names none.
    """

    login: tuple[str, str] | None = field(default=None, repr=False)
    ca: str | None = field(default=None, repr=False)
    client: ClientCertificate | None = field(default=None, repr=False)

    @property
    def credentials(self) -> Credentials | None:
        """The login as a live store's credentials."""
        return None if self.login is None else Credentials(*self.login)

    @property
    def s3(self) -> S3Keys | None:
        """The login as a bucket's keys."""
        return None if self.login is None else S3Keys(access=self.login[0], secret=self.login[1])

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the keys, to notice changes without keeping the keys."""
        parts = [*(self.login or ()), self.ca or "", *(self.client or ())]
        text = "".join(f"{len(part)}:{part}" for part in parts)
        return hashlib.sha256(text.encode()).hexdigest()


async def read_keys(
    api: Api, namespace: str, address: StoreAddress, *, labelled: bool = False
) -> Keys:
    """Read the current keys of a store: its Secret, and its bundle of certificates.

    Args:
        api: the API server.
        namespace: the StreamStore's namespace.
        address: the store's address, which names both.
        labelled: whether Secrets need the label that allows StreamStores to use them.

    Raises:
        AccessDenied: a Secret lacks the label.
        SecretNotFound: one of the objects does not exist, or lacks a key.
        ApiUnavailable: one of them could not be read.
    """

    async def secret(name: str, where: str | None) -> Object | None:
        body = await api.get(SECRET, namespace, name)
        if body is not None and labelled:
            _check_label(body, where)
        return body

    login = ca = client = None
    if address.secret is not None:
        login = login_of(address, await secret(address.secret, address.kind.secret_field))
    if address.ca is not None:
        ca = await _bundle(api, namespace, address, secret)
    if address.client_certificate is not None:
        where = address.kind.client_field
        body = await secret(address.client_certificate, where)
        values = _values(body, address.client_certificate, CLIENT_KEYS, where=where)
        client = ClientCertificate(*values)
    return Keys(login=login, ca=ca, client=client)


def secret_names(address: StoreAddress) -> set[str]:
    """Return the names of the Secrets that open a store: of its login and of its certificates."""
    bundle = (address.ca or "").rpartition("/")[0]
    found = {address.secret, address.client_certificate}
    if not bundle.startswith(CONFIG_MAPS):
        found.add(bundle)
    return {one for one in found if one}


def login_of(address: StoreAddress, body: Object | None) -> tuple[str, str]:
    """Return the two values of a store's Secret.

    Raises:
        SecretNotFound: the Secret does not exist (`body` is None), or lacks a key.
    """
    keys, where = address.kind.keys or (), address.kind.secret_field
    first, second = _values(body, address.secret, keys, where=where)
    return first, second


def _values(
    body: Object | None, name: str | None, keys: Sequence[str], *, where: str | None
) -> list[str]:
    """Return the values of a Secret under some keys. SecretNotFound if it lacks one."""
    remedy = f"Create the Secret with the keys {' and '.join(keys)}."
    if body is None:
        raise SecretNotFound(f"there is no Secret {name!r}", field=where, remedy=remedy)
    values = [_decoded((body.get("data") or {}).get(key)) for key in keys]
    for key, value in zip(keys, values, strict=True):
        if not value:
            raise SecretNotFound(
                f"the Secret {name!r} has no key {key!r}", field=where, remedy=remedy
            )
    return values


def _check_label(body: Object, where: str | None) -> None:
    """Check that the Secret's owner lets StreamStores use it."""
    metadata = body["metadata"]
    if (metadata.get("labels") or {}).get(CONSENT_LABEL) != "true":
        raise AccessDenied(
            f'the Secret {metadata["name"]!r} lacks the label {CONSENT_LABEL}: "true", without'
            " which the administrator lets no StreamStore use it",
            field=where,
            remedy=f"Ask an administrator of its namespace to set {CONSENT_LABEL}=true.",
        )


async def _bundle(
    api: Api,
    namespace: str,
    address: StoreAddress,
    secret: Callable[[str, str | None], Awaitable[Object | None]],
) -> str:
    """Read a bundle of certificates: `ca` is its name in the folder of credentials."""
    folder, _, key = (address.ca or "").rpartition("/")
    name, where = folder.removeprefix(CONFIG_MAPS), address.kind.ca_field
    if name == folder:
        kind, body = SECRET, await secret(name, where)
        found = _decoded(_value(body, key))
    else:
        kind, body = CONFIG_MAP, await api.get(CONFIG_MAP, namespace, name)
        found = _value(body, key) or ""
    if not found:
        raise SecretNotFound(
            f"there is no {kind.name} {name!r} with the key {key!r}",
            field=where,
            remedy="Create it, with certificates in PEM under that key.",
        )
    return found


def _value(body: Object | None, key: str) -> str | None:
    """Return a value of a Secret or a ConfigMap as it is written; None if there is none."""
    return ((body or {}).get("data") or {}).get(key)


def _decoded(value: str | None) -> str:
    """Decode a value of a Secret, without the line break at its end; empty if it is invalid."""
    try:
        return base64.b64decode(value or "", validate=True).decode().rstrip("\r\n")
    except (binascii.Error, UnicodeDecodeError):
        return ""
