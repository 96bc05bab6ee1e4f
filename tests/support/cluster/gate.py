"""A gate before a store's controller, in a pod, that a test shuts and opens: see gate_program."""

from __future__ import annotations

import json
import select
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from uuid import uuid4

from localcluster.store_manifests import NAMESPACE
from support.cluster.gate_program import PORT
from support.until import PATIENTLY

if TYPE_CHECKING:
    from localcluster import Cluster
    from localcluster.store import ClusterStore

_PROGRAM = Path(__file__).with_name("gate_program.py")
_PATIENCE = 30.0


@dataclass(frozen=True)
class Calls:
    """Calls of the controller's methods, by name, in the order in which they came.

    Attributes:
        passed: calls that reached the controller.
        held: calls that the gate holds up at present.
    """

    passed: list[str]
    held: list[str]


class Gate:
    """The way to a store's controller. It is open until it is shut.

    Args:
        cluster: the store's cluster.
        store: the store.
        image: an image with Python and gRPC, such as Sluice's own.
    """

    def __init__(self, cluster: Cluster, store: ClusterStore, image: str) -> None:
        self._cluster = cluster
        self._controller = store.uri.removeprefix("tcp://")
        self._image = image
        self._name = f"gate-{uuid4().hex[:8]}"
        self._child: subprocess.Popen[bytes] | None = None
        self._address = ""

    def __enter__(self) -> Self:
        """Start the gate."""
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the gate."""
        self.close()

    @property
    def uri(self) -> str:
        """The controller's address behind the gate, for pods."""
        return f"tcp://{self._address}:{PORT}"

    def open(self) -> None:
        """Let every call pass, including calls that were held up."""
        self._order("open")

    def shut(self) -> None:
        """Refuse connections, and cut open ones."""
        self._order("shut")

    def swallow(self) -> None:
        """Accept calls, and answer none."""
        self._order("swallow")

    def hold(self, method: str) -> None:
        """Hold up the calls of one of the controller's methods. Others pass."""
        self._order(f"hold {method}")

    def calls(self, word: str) -> Calls:
        """Return the calls that contain a word, such as a scope."""
        return Calls(**self._order(f"calls {word}"))

    def close(self) -> None:
        """Remove the gate."""
        if self._child is not None:
            self._child.kill()
            self._child.communicate()
        self._kubectl("delete", "pod", self._name, "--ignore-not-found", "--wait=false")

    def _start(self) -> None:
        self._kubectl("apply", "--filename=-", stdin=json.dumps(self._pod()))
        self._kubectl("wait", f"pod/{self._name}", "--for=condition=Ready", PATIENTLY)
        path = "jsonpath={.status.podIP}"
        self._address = self._kubectl("get", "pod", self._name, f"--output={path}")
        program = ("python3", "-c", _PROGRAM.read_text(), self._controller)
        words = (f"--namespace={NAMESPACE}", "exec", "--stdin", self._name, "--", *program)
        self._child = subprocess.Popen(
            self._cluster.kubectl_command(*words), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.open()

    def _order(self, line: str) -> dict[str, Any]:
        child = self._child
        assert child is not None
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(line.encode() + b"\n")
        child.stdin.flush()
        ready, _, _ = select.select([child.stdout], [], [], _PATIENCE)
        assert ready, f"the gate does not answer: {line}"
        answer: dict[str, Any] = json.loads(child.stdout.readline())
        assert "error" not in answer, answer
        return answer

    def _kubectl(self, *words: str, stdin: str | None = None) -> str:
        return self._cluster.kubectl(f"--namespace={NAMESPACE}", *words, stdin=stdin)

    def _pod(self) -> dict[str, Any]:
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": self._name, "labels": {"app.kubernetes.io/name": "gate"}},
            "spec": {
                "automountServiceAccountToken": False,
                "terminationGracePeriodSeconds": 0,
                "securityContext": {
                    "runAsNonRoot": True,
                    "runAsUser": 65532,
                    "seccompProfile": {"type": "RuntimeDefault"},
                },
                "containers": [
                    {
                        "name": "gate",
                        "image": self._image,
                        "command": ["sleep", "infinity"],
                        "securityContext": {
                            "allowPrivilegeEscalation": False,
                            "capabilities": {"drop": ["ALL"]},
                        },
                    }
                ],
            },
        }
