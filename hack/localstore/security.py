"""Logins and TLS of the cluster's servers, as files and system properties."""

import base64
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from localstore.accounts import User, accounts_file
from localstore.certificates import STORE_PASSWORD, Authority, keystores
from localstore.ports import HOST
from localstore.standalone_config import ServerTLS

_SIGNING_KEY = "secret"

Properties = dict[str, object]


@dataclass(frozen=True)
class Security:
    """The logins and TLS that the servers require of clients and of each other.

    Attributes:
        users: accounts; no login is required if there are none. The servers use the first.
        accounts: the file of the accounts, which a controller reads when it starts.
        token_seconds: life of the controller's delegation tokens.
        tls: certificates of all servers; None if they speak no TLS.
    """

    users: Sequence[User]
    accounts: Path
    token_seconds: int
    tls: ServerTLS | None

    @property
    def authorization(self) -> str | None:
        """The header of the first user; None if no login is required."""
        return f"Basic {_pair(self.users[0])}" if self.users else None

    def context(self) -> ssl.SSLContext | None:
        """Return the TLS context of a probe; None if the servers speak no TLS."""
        if self.tls is None:
            return None
        context = ssl.create_default_context(cafile=self.tls.authority)
        context.set_alpn_protocols(["h2"])
        return context

    def write(self, users: Sequence[User]) -> None:
        """Write the accounts. The controller reads them at its next start."""
        self.accounts.write_text(accounts_file(users))

    def of_controller(self) -> Properties:
        """Return the controller's properties."""
        found: Properties = {}
        if self.users:
            found |= {
                "controller.security.auth.enable": "true",
                "controller.security.pwdAuthHandler.accountsDb.location": self.accounts,
                "controller.security.auth.delegationToken.signingKey.basis": _SIGNING_KEY,
                "controller.security.auth.delegationToken.ttl.seconds": self.token_seconds,
            }
        if self.tls is not None:
            found |= {
                "controller.security.tls.enable": "true",
                "controller.security.tls.server.certificate.location": self.tls.certificate.chain,
                "controller.security.tls.server.privateKey.location": self.tls.certificate.key,
                "controller.security.tls.trustStore.location": self.tls.authority,
                "controller.security.tls.server.keyStore.location": self.tls.keys,
                "controller.security.tls.server.keyStore.pwd.location": self.tls.password,
                "controller.segmentstore.connect.channel.tls": "ENABLED",
            }
        return found

    def of_segment_store(self) -> Properties:
        """Return a segment store's properties. It is a client of the controller, too."""
        found: Properties = {
            "autoscale.controller.connect.security.auth.enable": str(bool(self.users)).lower(),
        }
        if self.users:
            found |= {
                "autoscale.security.auth.token.signingKey.basis": _SIGNING_KEY,
                "pravega.client.auth.method": "Basic",
                "pravega.client.auth.token": _pair(self.users[0]),
            }
        if self.tls is not None:
            found |= {
                "autoscale.controller.connect.security.tls.enable": "true",
                "autoscale.controller.connect.security.tls.truststore.location": self.tls.authority,
                "pravegaservice.security.tls.enable": "true",
                "pravegaservice.security.tls.server.certificate.location": (
                    self.tls.certificate.chain
                ),
                "pravegaservice.security.tls.server.privateKey.location": self.tls.certificate.key,
                "pravegaservice.security.tls.server.keyStore.location": self.tls.keys,
                "pravegaservice.security.tls.server.keyStore.pwd.location": self.tls.password,
            }
        return found


def server_certificates(folder: Path, *hosts: str) -> ServerTLS:
    """Make an authority, and the certificates of a server of this machine, or of other hosts."""
    authority = Authority(folder)
    certificate = authority.issue("server", HOST, "localhost", *hosts)
    keys, trusted = keystores(certificate, authority, folder)
    password = folder / "keystore.password"
    password.write_text(STORE_PASSWORD)
    return ServerTLS(certificate, authority.bundle, keys, trusted, password)


def _pair(user: User) -> str:
    return base64.b64encode(f"{user.name}:{user.password}".encode()).decode()
