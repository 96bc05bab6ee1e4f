"""Command lines of the components of our own one-node Kubernetes."""

from typing import Literal

from localcluster.node.layout import NODE, SERVICE_RANGE, Layout

Name = Literal[
    "containerd",
    "etcd",
    "kube-apiserver",
    "kubelet",
    "kube-controller-manager",
    "kube-scheduler",
    "kube-proxy",
]


def component_command(name: Name, layout: Layout, address: str) -> list[str]:
    """Return a component's command line.

    Args:
        name: the component.
        layout: files and ports.
        address: the machine's address.

    Returns:
        The command.
    """
    if name == "containerd":
        return ["containerd", "--config", str(layout.file("containerd.toml"))]
    options = {
        "etcd": _etcd,
        "kube-apiserver": _apiserver,
        "kubelet": _kubelet,
        "kube-controller-manager": _controllers,
        "kube-scheduler": _scheduler,
        "kube-proxy": _proxy,
    }[name](layout, address)
    return [str(layout.program), name, *(f"--{key}={value}" for key, value in options.items())]


def _etcd(layout: Layout, _address: str) -> dict[str, object]:
    client = f"http://127.0.0.1:{layout.ports.etcd}"
    peer = f"http://127.0.0.1:{layout.ports.etcd_peer}"
    return {
        "name": NODE,
        "data-dir": layout.state / "etcd",
        "unsafe-no-fsync": "true",  # syncs cost seconds; a test cluster need not survive power cuts
        "log-level": "warn",
        "listen-client-urls": client,
        "advertise-client-urls": client,
        "listen-peer-urls": peer,
        "initial-advertise-peer-urls": peer,
        "initial-cluster": f"{NODE}={peer}",
    }


def _apiserver(layout: Layout, address: str) -> dict[str, object]:
    pki = layout.pki
    return {
        "etcd-servers": f"http://127.0.0.1:{layout.ports.etcd}",
        "advertise-address": address,
        "secure-port": layout.ports.apiserver,
        "tls-cert-file": pki / "apiserver.crt",
        "tls-private-key-file": pki / "apiserver.key",
        "client-ca-file": pki / "ca.crt",
        "authorization-mode": "Node,RBAC",
        # Pod security, quotas and limits are on by default.
        "enable-admission-plugins": "NodeRestriction",
        "allow-privileged": "true",
        "service-cluster-ip-range": SERVICE_RANGE,
        "service-account-issuer": "https://kubernetes.default.svc.cluster.local",
        "service-account-key-file": pki / "sa.pub",
        "service-account-signing-key-file": pki / "sa.key",
        "kubelet-client-certificate": pki / "apiserver-kubelet-client.crt",
        "kubelet-client-key": pki / "apiserver-kubelet-client.key",
        "kubelet-certificate-authority": pki / "ca.crt",
        "kubelet-preferred-address-types": "InternalIP",
        "requestheader-client-ca-file": pki / "front-proxy-ca.crt",
        "requestheader-allowed-names": "front-proxy-client",
        "requestheader-username-headers": "X-Remote-User",
        "requestheader-group-headers": "X-Remote-Group",
        "requestheader-extra-headers-prefix": "X-Remote-Extra-",
        "proxy-client-cert-file": pki / "front-proxy-client.crt",
        "proxy-client-key-file": pki / "front-proxy-client.key",
    }


def _kubelet(layout: Layout, address: str) -> dict[str, object]:
    return {
        "config": layout.file("kubelet.json"),
        "kubeconfig": layout.pki / "kubelet.kubeconfig",
        "hostname-override": NODE,
        "node-ip": address,
        "root-dir": layout.state / "kubelet",
    }


def _controllers(layout: Layout, _address: str) -> dict[str, object]:
    pki = layout.pki
    return {
        "kubeconfig": pki / "controller-manager.kubeconfig",
        "service-account-private-key-file": pki / "sa.key",
        "root-ca-file": pki / "ca.crt",
        # The defaults are for shared clusters, and too slow for a test with many objects.
        "kube-api-qps": 300,
        "kube-api-burst": 600,
    }


def _scheduler(layout: Layout, _address: str) -> dict[str, object]:
    file = layout.pki / "scheduler.kubeconfig"
    return {
        "kubeconfig": file,
        "authentication-kubeconfig": file,
        "authorization-kubeconfig": file,
        "bind-address": "127.0.0.1",
        "leader-elect": "false",
        "secure-port": layout.ports.scheduler,
    }


def _proxy(layout: Layout, _address: str) -> dict[str, object]:
    return {"config": layout.file("proxy.json")}
