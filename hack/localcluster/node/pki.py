"""The certificates of a one-node Kubernetes, and the kubeconfig files that carry them."""

import base64
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from localcluster.commands import run

_DAYS = "3650"

# The machine's own configuration of OpenSSL must not influence the certificates.
_OPENSSL = "[req]\ndistinguished_name = name\n[name]\n"

_CA_EXTENSIONS = (
    "basicConstraints=critical,CA:TRUE",
    "keyUsage=critical,digitalSignature,keyEncipherment,keyCertSign",
    "subjectKeyIdentifier=hash",
)
_LEAF_EXTENSIONS = (
    "basicConstraints=critical,CA:FALSE",
    "keyUsage=critical,digitalSignature,keyEncipherment",
)

# Files are named after the component that shows the certificate to the API server.
_USERS = {
    "admin": ("kubernetes-admin", "system:masters"),
    "controller-manager": ("system:kube-controller-manager", ""),
    "scheduler": ("system:kube-scheduler", ""),
    "proxy": ("system:kube-proxy", ""),
}


@dataclass(frozen=True)
class Identity:
    """The names and addresses in the certificates.

    Attributes:
        node: name of the node.
        address: address of the machine.
        service: address of the service `kubernetes`.
        server: URL of the API server for the machine.
    """

    node: str
    address: str
    service: str
    server: str


def ensure_pki(folder: Path, identity: Identity) -> None:
    """Make missing certificates. For a new address, make new certificates with the old CA.

    Args:
        folder: folder of all certificates.
        identity: names and addresses in the certificates.

    Raises:
        LocalClusterError: OpenSSL failed.
    """
    made_for = folder / "identity.json"
    wanted = json.dumps(asdict(identity))
    if made_for.exists() and made_for.read_text() == wanted:
        return
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    (folder / "openssl.cnf").write_text(_OPENSSL)
    _authorities(folder)
    _servers(folder, identity)
    users = {**_USERS, "kubelet": (f"system:node:{identity.node}", "system:nodes")}
    for file, (user, group) in users.items():
        _certificate(folder, file, user, group)
        config = _kubeconfig(folder, file, identity.server)
        (folder / f"{file}.kubeconfig").write_text(config)
    made_for.write_text(wanted)  # last, so that an interrupted run is repeated


def _authorities(folder: Path) -> None:
    for name in ("ca", "front-proxy-ca"):
        if not (folder / f"{name}.crt").exists():
            _openssl(folder, name, f"/CN=sluice {name}", _CA_EXTENSIONS)
    if not (folder / "sa.pub").exists():
        key = str(folder / "sa.key")
        run(["openssl", "genrsa", "-out", key, "2048"])
        run(["openssl", "rsa", "-in", key, "-pubout", "-out", str(folder / "sa.pub")])


def _servers(folder: Path, identity: Identity) -> None:
    local = ["DNS:localhost", f"DNS:{identity.node}", "IP:127.0.0.1", f"IP:{identity.address}"]
    service = ["kubernetes"]
    for part in ("default", "svc", "cluster", "local"):
        service.append(f"{service[-1]}.{part}")
    names = [*local, f"IP:{identity.service}", *(f"DNS:{name}" for name in service)]
    _certificate(folder, "apiserver", "kube-apiserver", names=names)
    _certificate(
        folder, "kubelet-server", f"system:node:{identity.node}", "system:nodes", names=local
    )
    _certificate(
        folder, "apiserver-kubelet-client", "kube-apiserver-kubelet-client", "system:masters"
    )
    _certificate(folder, "front-proxy-client", "front-proxy-client", authority="front-proxy-ca")


def _certificate(
    folder: Path,
    name: str,
    user: str,
    group: str = "",
    *,
    names: Sequence[str] = (),
    authority: str = "ca",
) -> None:
    extensions = [*_LEAF_EXTENSIONS, f"extendedKeyUsage=clientAuth{',serverAuth' if names else ''}"]
    if names:
        extensions.append(f"subjectAltName={','.join(names)}")
    subject = (f"/O={group}" if group else "") + f"/CN={user}"
    _openssl(folder, name, subject, extensions, authority)


def _openssl(
    folder: Path, name: str, subject: str, extensions: Sequence[str], authority: str | None = None
) -> None:
    file = str(folder / name)
    signer = str(folder / (authority or ""))
    signed = ["-CA", f"{signer}.crt", "-CAkey", f"{signer}.key"] if authority else []
    added = [word for extension in extensions for word in ("-addext", extension)]
    new_key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-noenc"]
    request = ["openssl", "req", "-x509", "-config", str(folder / "openssl.cnf"), "-days", _DAYS]
    files = ["-keyout", f"{file}.key", "-out", f"{file}.crt"]
    run([*request, *signed, *new_key, "-subj", subject, *added, *files])


def _kubeconfig(folder: Path, name: str, server: str) -> str:
    def data(file: str) -> str:
        return base64.b64encode((folder / file).read_bytes()).decode()

    cluster = {"server": server, "certificate-authority-data": data("ca.crt")}
    user = {
        "client-certificate-data": data(f"{name}.crt"),
        "client-key-data": data(f"{name}.key"),
    }
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "sluice",
        "clusters": [{"name": "sluice", "cluster": cluster}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": "sluice", "context": {"cluster": "sluice", "user": name}}],
    }
    return json.dumps(config, indent=2) + "\n"
