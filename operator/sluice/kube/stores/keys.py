"""What Secrets and ConfigMaps hold for stores: logins, keys, certificates. Nothing is logged."""

from __future__ import annotations

import base64
import binascii
import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from sluice.archive.objects.s3 import S3Keys
from sluice.core.workloads.request import CONFIG_MAPS
from sluice.errors import SecretNotFound
from sluice.kube.api.kinds import CONFIG_MAP, SECRET
from sluice.stores.credentials import Credentials

if TYPE_CHECKING:
    from sluice.core.values.model import StoreAddress
    from sluice.kube.api.client import Api
    from sluice.kube.api.kinds import Object

_CA_FIELD: Final = "spec.s3.caBundleRef"


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """What opens a store. Nothing of it appears in a repr.

    Attributes:
        login: user and password, or the two parts of a key; None where the store asks for none.
        ca: certificates in PEM that the store's is trusted by, besides the system's.
    """

    login: tuple[str, str] | None = field(default=None, repr=False)
    ca: str | None = field(default=None, repr=False)

    @property
    def credentials(self) -> Credentials | None:
        """As a live store takes it."""
        return None if self.login is None else Credentials(*self.login)

    @property
    def s3(self) -> S3Keys | None:
        """As a bucket takes it."""
        return None if self.login is None else S3Keys(access=self.login[0], secret=self.login[1])

    @property
    def fingerprint(self) -> str:
        """Tells whether these are the keys of before, without keeping them."""
        parts = [*(self.login or ()), self.ca or ""]
        text = "".join(f"{len(part)}:{part}" for part in parts)
        return hashlib.sha256(text.encode()).hexdigest()


async def read_keys(api: Api, namespace: str, address: StoreAddress) -> Keys:
    """What the Secret and the bundle of certificates of a store hold now.

    Args:
        api: where they are read.
        namespace: the StreamStore's.
        address: the store's.

    Raises:
        SecretNotFound: one of them is not there, or lacks a key.
        ApiUnavailable: one could not be read.
    """
    login = ca = None
    if address.secret is not None:
        body = await api.get(SECRET, namespace, address.secret)
        login = login_of(address, body)
    if address.ca is not None:
        ca = await _bundle(api, namespace, address.ca)
    return Keys(login=login, ca=ca)


def login_of(address: StoreAddress, body: Object | None) -> tuple[str, str]:
    """What a Secret holds for a store.

    Raises:
        SecretNotFound: there is no such Secret, or it lacks a key.
    """
    name, where, keys = address.secret, address.kind.secret_field, address.kind.keys or ()
    remedy = f"Create the Secret with the keys {' and '.join(keys)}."
    if body is None:
        raise SecretNotFound(f"there is no Secret {name!r}", field=where, remedy=remedy)
    values = [_decoded((body.get("data") or {}).get(key)) for key in keys]
    for key, value in zip(keys, values, strict=True):
        if not value:
            raise SecretNotFound(
                f"the Secret {name!r} has no key {key!r}", field=where, remedy=remedy
            )
    return values[0], values[1]


async def _bundle(api: Api, namespace: str, file: str) -> str:
    """A bundle of certificates, by its file's name in the folder of credentials."""
    folder, _, key = file.rpartition("/")
    name = folder.removeprefix(CONFIG_MAPS)
    kind = SECRET if name == folder else CONFIG_MAP
    if kind == SECRET:
        body = await api.get(SECRET, namespace, name)
    else:
        body = await api.get(CONFIG_MAP, namespace, name)
    written = ((body or {}).get("data") or {}).get(key)
    found = _decoded(written) if kind == SECRET else written
    if not found:
        raise SecretNotFound(
            f"there is no {kind.name} {name!r} with the key {key!r}",
            field=_CA_FIELD,
            remedy="Create it, with certificates in PEM under that key.",
        )
    return str(found)


def _decoded(value: str | None) -> str:
    """A value of a Secret; nothing where it is none."""
    try:
        return base64.b64decode(value or "", validate=True).decode().rstrip("\r\n")
    except (binascii.Error, UnicodeDecodeError):
        return ""
