"""An operator as a process of this machine, for one namespace of a cluster."""

from __future__ import annotations

import os
import signal
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any, Self

import yaml

from localstore.ports import free_ports
from support.command import warm
from support.until import until

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping, Sequence
    from pathlib import Path


class OperatorProcess:
    """The process. A test can kill it and start it again.

    Args:
        folder: directory for its configuration and log.
        kubeconfig: kubeconfig of the cluster and the operator's user.
        namespace: the namespace that it watches.
        profiles: profiles of the copies' pods; without them nothing can run.
        others: further namespaces that it watches.
        cluster: the cluster's identity; None for the namespace, empty for the cluster's own.
        more: other settings.
        program: the words before the command; the installed `sluice` by default.
        environment: further variables.
    """

    def __init__(
        self,
        folder: Path,
        kubeconfig: Path,
        namespace: str,
        profiles: Mapping[str, Any] | None = None,
        *,
        others: Sequence[str] = (),
        cluster: str | None = None,
        more: Mapping[str, Any] | None = None,
        program: Sequence[str | Path] = (warm.SLUICE,),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        (self.port,) = free_ports(1)
        self._log = folder / "operator.log"
        self._config = folder / "operator.yaml"
        self._program = program
        self._environment = {"KUBECONFIG": str(kubeconfig), **(environment or {})}
        self._process: subprocess.Popen[bytes] | None = None
        config = {
            "clusterID": namespace if cluster is None else cluster,
            "namespaces": [namespace, *others],
            "resyncSeconds": 1,
            "listen": {"host": "127.0.0.1", "port": self.port},
            "image": "localhost/sluice:none",
            **(more or {}),
        }
        if profiles is not None:
            config["profiles"] = dict(profiles)
        self._config.write_text(yaml.safe_dump(config))

    def __enter__(self) -> Self:
        """Start the process."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the process."""
        if self._process is not None:
            self._process.terminate()
            self._process.send_signal(signal.SIGCONT)
            self._process.wait(timeout=30)

    def start(self) -> None:
        """Start the process, and return when it is ready."""
        self.begin()
        until("the operator is ready", lambda: self.probe("readyz")[0] == 200)

    def begin(self) -> None:
        """Start the process."""
        with self._log.open("ab") as log:
            self._process = warm.Popen(
                [*self._program, "--log-level=info", "operator", f"--config={self._config}"],
                env=os.environ | self._environment,
                stderr=log,
            )

    @property
    def is_running(self) -> bool:
        """Tell whether the process runs."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The process id."""
        assert self._process is not None
        return self._process.pid

    def log(self) -> str:
        """Return the log so far."""
        return self._log.read_text()

    def configure(self, **changes: Any) -> None:
        """Change settings, which hold once the process is started again, as Helm has it done."""
        self._config.write_text(yaml.safe_dump(yaml.safe_load(self._config.read_text()) | changes))

    def kill(self) -> int:
        """Kill the process, as a crash would, and return its id."""
        process = self._process
        assert process is not None
        process.kill()
        process.wait(timeout=30)
        return process.pid

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, such as SIGSTOP, which freezes the process."""
        assert self._process is not None
        self._process.send_signal(number)

    def code(self) -> int | None:
        """Return the exit code, or None while the process runs."""
        assert self._process is not None
        return self._process.poll()

    def ended(self) -> int:
        """Wait for the end of the process, and return its exit code."""
        until("the operator ends", lambda: self.code() is not None)
        assert self._process is not None
        return self._process.wait()

    def probe(self, path: str) -> tuple[int, str]:
        """Return the answer of a probe; 0 while nothing listens."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/{path}", timeout=10) as sent:
                return sent.status, sent.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""
