"""The start and the stop of our own one-node Kubernetes."""

import shutil
import time
from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path
from typing import get_args

from localcluster.commands import Say, run, succeeds
from localcluster.errors import LocalClusterError
from localcluster.files import link_or_copy
from localcluster.images.imports import runtime_answers
from localcluster.node.components import Name, component_command
from localcluster.node.layout import FIRST_SERVICE, NODE, RUN, RUNTIME_SOCKET, Layout
from localcluster.node.leftovers import (
    pod_cgroups,
    remove_log_links,
    remove_pod_cgroups,
    unmount_below,
)
from localcluster.node.network import Uplink, close_network, open_network, uplink
from localcluster.node.pki import Identity, ensure_pki
from localcluster.progress import step
from localstore.ports import HOST
from localstore.probe import is_listening
from localstore.process import Process
from localstore.state import living_processes, save_processes

NAMES: tuple[Name, ...] = get_args(Name)  # in the order of starting

# The components that would restart pods during their removal.
_MAKE_PODS: tuple[Name, ...] = ("kubelet", "kube-controller-manager", "kube-scheduler")

_READY_SECONDS = 90.0
_POLL_SECONDS = 0.2
_GRACE_SECONDS = 5.0
_RARE_COLLECTIONS = {"GOGC": "300"}
"""Go's collector takes a fifth of the API server's processor time if the heap may only double."""


class Node:
    """The node with all its components.

    Args:
        layout: the node's files and ports.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self.processes = living_processes(layout.state)

    @cached_property
    def _uplink(self) -> Uplink:
        return uplink()

    @property
    def running(self) -> bool:
        """Tell whether all components run."""
        return all(name in self.processes and self.processes[name].alive for name in NAMES)

    def start_runtime(self, pause_image: str) -> None:
        """Start the container runtime, and write settings and certificates of all components.

        Args:
            pause_image: image that holds a pod's namespaces.

        Raises:
            LocalClusterError: another Kubernetes uses this machine.
            LocalStoreError: the runtime does not start.
        """
        if not self.processes and not RUN.exists() and pod_cgroups():
            raise LocalClusterError(
                "another Kubernetes runs on this machine: name its kubeconfig in SLUICE_KUBECONFIG"
                " to use it, or stop it"
            )
        filtered = open_network()
        self._layout.write_files(
            pause_image=pause_image, mtu=self._uplink.mtu, bridge_filtered=filtered
        )
        identity = Identity(NODE, self._uplink.address, FIRST_SERVICE, self._layout.server)
        ensure_pki(self._layout.pki, identity)
        self._spawn("containerd")
        self._await("containerd", runtime_answers)

    def start(self, program: Path, say: Say) -> None:
        """Start the components that do not run, and wait until pods can run.

        Args:
            program: program of all components; the node keeps it in its state.
            say: callback for progress messages.

        Raises:
            LocalStoreError: a component does not start.
        """
        self._layout.program.parent.mkdir(exist_ok=True)
        link_or_copy(program, self._layout.program)
        with step(say, "starting Kubernetes"):
            for name in NAMES:
                self._spawn(name)
            self._await("etcd", lambda: is_listening(HOST, self._layout.ports.etcd))
            self._await("kube-apiserver", partial(self._kubectl_succeeds, "get", "--raw=/readyz"))
            self._await("kubelet", self._ready)
            self._await(
                "kube-controller-manager",
                partial(self._kubectl_succeeds, "get", "serviceaccount", "default"),
            )

    def stop(self) -> None:
        """Stop all components and pods. Only the state stays on the machine."""
        for name in _MAKE_PODS:
            self._stop(name)
        self._remove_pods()
        for name in reversed(NAMES):
            self._stop(name)
        save_processes(self._layout.state, self.processes)
        unmount_below(self._layout.state, RUN)
        remove_pod_cgroups()
        remove_log_links(self._layout.state)
        close_network()
        shutil.rmtree(RUN, ignore_errors=True)

    def _remove_pods(self) -> None:
        """Remove the pods. This needs the runtime, which is started again if it was killed."""
        if not (RUN / "containerd").exists() or not self._layout.program.exists():
            return
        self._spawn("containerd")
        self._await("containerd", runtime_answers)
        command = [str(self._layout.program), "remove-pods", f"unix://{RUNTIME_SOCKET}"]
        deadline = time.monotonic() + _READY_SECONDS
        while not succeeds(command, seconds=_READY_SECONDS):  # the runtime's pod service comes last
            if time.monotonic() > deadline:
                run(command, seconds=_READY_SECONDS)
            time.sleep(_POLL_SECONDS)

    def _spawn(self, name: Name) -> None:
        if name in self.processes and self.processes[name].alive:
            return
        self.processes[name] = Process.spawn(
            name,
            component_command(name, self._layout, self._uplink.address),
            log=self._layout.log(name),
            tethered=False,
            environment=_RARE_COLLECTIONS,
        )
        save_processes(self._layout.state, self.processes)

    def _await(self, name: Name, check: Callable[[], bool]) -> None:
        self.processes[name].wait_ready(check, seconds=_READY_SECONDS)

    def _stop(self, name: Name) -> None:
        if name in self.processes:
            self.processes.pop(name).stop(grace=_GRACE_SECONDS)

    def _ready(self) -> bool:
        return self._kubectl_succeeds(
            "wait", f"node/{NODE}", "--for=condition=Ready", "--timeout=1s"
        )

    def _kubectl_succeeds(self, *arguments: str) -> bool:
        access = f"--kubeconfig={self._layout.kubeconfig}"
        return succeeds([self._layout.program, "kubectl", access, *arguments])
