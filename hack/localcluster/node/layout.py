"""Files, ports and settings of our own one-node Kubernetes.

`state` lasts until it is wiped (certificates, etcd, images). `run` is lost when the machine
restarts (sockets, running processes).
"""

import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self

from localstore.cache import state_root
from localstore.state import kept_ports

NODE = "sluice"
BRIDGE = "sluice0"
POD_RANGE = "10.244.0.0/16"
SERVICE_RANGE = "10.96.0.0/16"
FIRST_SERVICE = "10.96.0.1"  # the API server itself
DNS_SERVICE = "10.96.0.10"

RUN = Path("/run/sluice-kubernetes")
RUNTIME_SOCKET = RUN / "containerd.sock"
_CNI_PLUGINS = Path("/usr/lib/cni")


@dataclass(frozen=True)
class Ports:
    """The ports on this machine, as recorded in the state."""

    apiserver: int
    etcd: int
    etcd_peer: int
    kubelet: int
    kubelet_health: int
    scheduler: int
    proxy_health: int
    proxy_metrics: int


@dataclass(frozen=True)
class Layout:
    """The files and ports of the cluster.

    Attributes:
        state: directory of the state.
        ports: ports on this machine.
    """

    state: Path
    ports: Ports

    @classmethod
    def load(cls, state: Path | None = None) -> Self:
        """Return the layout of a directory, by default the user's own."""
        state = state or state_folder()
        names = [field.name for field in fields(Ports)]
        return cls(state, Ports(**kept_ports(state, names)))

    @property
    def pki(self) -> Path:
        """The certificates' directory."""
        return self.state / "pki"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.pki / "admin.kubeconfig"

    @property
    def program(self) -> Path:
        """The program of all components but the container runtime, independent of the cache."""
        return self.state / "bin" / "sluice-testnode"

    @property
    def server(self) -> str:
        """The API server's URL for this machine."""
        return f"https://127.0.0.1:{self.ports.apiserver}"

    def log(self, name: str) -> Path:
        """Return a component's log file."""
        return self.state / "logs" / f"{name}.log"

    def file(self, name: str) -> Path:
        """Return a component's file of settings."""
        return self.state / "config" / name

    def write_files(self, *, pause_image: str, mtu: int, bridge_filtered: bool) -> None:
        """Write the settings of all components.

        Args:
            pause_image: image that holds a pod's namespaces.
            mtu: largest packet of the machine's own network, in bytes.
            bridge_filtered: whether iptables sees bridged packets.
        """
        for folder in ("config/cni", "logs", "pod-logs", "volume-plugins"):
            (self.state / folder).mkdir(parents=True, exist_ok=True)
        RUN.mkdir(parents=True, exist_ok=True)
        self.file("containerd.toml").write_text(self._containerd(pause_image))
        _write(self.file("cni/10-sluice.conflist"), _network(mtu))
        _write(self.file("kubelet.json"), self._kubelet())
        _write(self.file("proxy.json"), self._proxy(bridge_filtered=bridge_filtered))

    def _containerd(self, pause_image: str) -> str:
        return f"""\
version = 2
root = "{self.state}/containerd"
state = "{RUN}/containerd"

[grpc]
  address = "{RUNTIME_SOCKET}"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause_image}"
  # Without CAP_SYS_RESOURCE no process may lower an oom_score_adj, as is done for pods.
  restrict_oom_score_adj = true
  enable_unprivileged_ports = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{_CNI_PLUGINS}"
    conf_dir = "{self.state}/config/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
"""

    def _kubelet(self) -> dict[str, Any]:
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "port": self.ports.kubelet,
            "healthzPort": self.ports.kubelet_health,
            "cgroupDriver": "cgroupfs",
            "failCgroupV1": False,
            "failSwapOn": False,
            "containerRuntimeEndpoint": f"unix://{RUNTIME_SOCKET}",
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": f"{self.pki}/ca.crt"},
            },
            "authorization": {"mode": "Webhook"},
            "tlsCertFile": f"{self.pki}/kubelet-server.crt",
            "tlsPrivateKeyFile": f"{self.pki}/kubelet-server.key",
            "clusterDomain": "cluster.local",
            "clusterDNS": [DNS_SERVICE],
            "resolvConf": "/etc/resolv.conf",
            "podLogsDir": f"{self.state}/pod-logs",
            "volumePluginDir": f"{self.state}/volume-plugins",
            "serializeImagePulls": False,
            # Detects a pod that fills its disk sooner. The default of a minute is for many pods.
            "volumeStatsAggPeriod": "10s",
            # 100 % means never, because no registry could provide a collected image again.
            "imageGCHighThresholdPercent": 100,
            "imageGCLowThresholdPercent": 99,
            # The defaults are shares of the disk, but a developer's disk is often nearly full.
            "evictionHard": {
                "memory.available": "200Mi",
                "nodefs.available": "1Gi",
                "imagefs.available": "1Gi",
                "nodefs.inodesFree": "1%",
            },
        }

    def _proxy(self, *, bridge_filtered: bool) -> dict[str, Any]:
        return {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "clientConnection": {"kubeconfig": f"{self.pki}/proxy.kubeconfig"},
            "mode": "iptables",
            # Otherwise a pod's answer to its neighbour crosses the bridge untranslated, and comes
            # from an address that the neighbour never called.
            "iptables": {"masqueradeAll": not bridge_filtered, "minSyncPeriod": "100ms"},
            "clusterCIDR": POD_RANGE,
            "hostnameOverride": NODE,
            "healthzBindAddress": f"127.0.0.1:{self.ports.proxy_health}",
            "metricsBindAddress": f"127.0.0.1:{self.ports.proxy_metrics}",
            "conntrack": {"maxPerCore": 0},  # keep the machine's own limits
        }


def state_folder() -> Path:
    """Return the directory of the user's own cluster."""
    return state_root() / "kubernetes"


def _network(mtu: int) -> dict[str, Any]:
    bridge = {
        "type": "bridge",
        "bridge": BRIDGE,
        "mtu": mtu,
        "isGateway": True,
        "hairpinMode": True,  # a pod may reach itself through its service
        "ipam": {
            "type": "host-local",
            "dataDir": f"{RUN}/addresses",
            "ranges": [[{"subnet": POD_RANGE}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    }
    return {"cniVersion": "1.0.0", "name": "sluice", "plugins": [bridge]}


def _write(file: Path, content: object) -> None:
    file.write_text(json.dumps(content, indent=2) + "\n")
