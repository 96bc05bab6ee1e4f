# noqa: INP001 - a script of the Dockerfile's
"""Make the archive of Java classes from which the image's JVMs start in half the time.

    train.py ARCHIVE

Runs a job as the image will run it, with an executor. A stand-in for the API server makes the
executor's pod: it starts a process instead. At the driver's end, Java writes down the classes that
it has loaded, in the form in which it keeps them in memory. They stand on top of the archive of
Java's own classes. The few classes that only an executor loads are not among them. The build fails
where the job does, so it is a first test of the image, too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from sluice.pipelines.spark import java, sparkconf
from sluice.pipelines.spark.application import Application
from sluice.pipelines.spark.executor import arguments
from sluice.pipelines.spark.jvm import Jvm

_OPTIONS = "JAVA_TOOL_OPTIONS"
"""The variable with options for each JVM that starts."""

_WRITING_SECONDS = 120
"""The longest time in which Java may write the archive."""

DRIVER = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "driver", "namespace": "default", "uid": "1234"},
    "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
}
TEMPLATE = """\
apiVersion: v1
kind: Pod
metadata: {labels: {app: train}}
spec:
  automountServiceAccountToken: false
  securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
  containers:
  - name: executor
    image: train
    securityContext: {readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
    resources: {requests: {cpu: 100m, memory: 1Gi}, limits: {memory: 1Gi}}
    volumeMounts: [{name: spark-local-dir-tmp, mountPath: /tmp}]
  volumes: [{name: spark-local-dir-tmp, emptyDir: {}}]
"""


class OrderlyJvm(Jvm):
    """A JVM that ends by itself, so that it writes its archive."""

    def stop(self) -> None:
        """End the JVM, and wait until it has written all."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=_WRITING_SECONDS)
        super().stop()


class Api(BaseHTTPRequestHandler):
    """As much of an API server as Spark needs to make an executor.

    Its lists have the executors, because Spark takes those that no list has for lost.
    """

    protocol_version = "HTTP/1.1"
    executors: list[tuple[dict[str, Any], subprocess.Popen[bytes]]]
    ended: threading.Event

    def do_GET(self) -> None:
        """Answer with the driver's pod, a list of it or of the executors, or a watch."""
        if "watch=" in self.path:
            self._watch()
        elif "?" in self.path:
            items = [DRIVER] if "fieldSelector=" in self.path else self._executors()
            metadata = {"resourceVersion": "1"}
            kind = {"apiVersion": "v1", "kind": "PodList"}
            self._answer({**kind, "metadata": metadata, "items": items})
        else:
            self._answer(DRIVER)

    def do_POST(self) -> None:
        """Start an executor."""
        pod = json.loads(self._body())
        environment = {
            item["name"]: item.get("value", "127.0.0.1")
            for item in pod["spec"]["containers"][0]["env"]
        }
        environment = {**os.environ, **environment, "SPARK_LOCAL_IP": "127.0.0.1"}
        del environment[_OPTIONS]  # the driver's archive is the one that is written
        process = subprocess.Popen(  # noqa: S603 - a command of our own
            [java.java(), *arguments(environment)], env=environment
        )
        self.executors.append((pod, process))
        self._answer(pod, code=201)

    def do_DELETE(self) -> None:
        """Do nothing: executors end with their driver."""
        self._body()
        self._answer({"apiVersion": "v1", "kind": "Status", "status": "Success"})

    def _executors(self) -> list[dict[str, Any]]:
        """Return the executors' pods. They run as long as their processes do."""
        return [
            {**pod, "status": {"phase": "Running" if process.poll() is None else "Failed"}}
            for pod, process in self.executors
        ]

    def _watch(self) -> None:
        """Send no event. The client asks plainly once it gets no WebSocket."""
        if self.headers.get("Upgrade"):
            self._answer({})
            return
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.ended.wait()
        self.close_connection = True

    def log_message(self, *_: Any) -> None:
        """Print nothing."""

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def _answer(self, value: dict[str, Any], *, code: int = 200) -> None:
        body = json.dumps(value).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


# The daemon of Sluice's own imports all of Sluice, which is not here.
PLAIN = {"spark.python.daemon.module": "pyspark.daemon"}


def job(context: Any, tasks: int) -> None:
    """Run a job such as Sluice runs."""
    for _ in range(2):
        doubled = context.parallelize(range(tasks), tasks).mapPartitions(lambda n: [sum(n) * 2])
        if sorted(doubled.collect()) != [2 * number for number in range(tasks)]:
            raise SystemExit("the job's result is wrong")


def train(archive: Path, configuration: dict[str, str], tasks: int) -> None:
    """Run a job, and have its driver's JVM write the archive."""
    os.environ[_OPTIONS] = f"-XX:ArchiveClassesAtExit={archive}"
    with Application(configuration | PLAIN, jvm=OrderlyJvm) as application:
        job(application.start(), tasks)
    del os.environ[_OPTIONS]
    if not archive.exists():
        raise SystemExit(f"Java did not write {archive}")


def train_local(archive: Path) -> None:
    """Train by a job in one process, as tests on this machine run them: see hack/classes.py."""
    train(archive, sparkconf.local(2), 2)


def train_executors(archive: Path) -> None:
    """Train by a job in an executor."""
    Api.executors, Api.ended = [], threading.Event()
    with (
        tempfile.TemporaryDirectory() as folder,
        ThreadingHTTPServer(("127.0.0.1", 0), Api) as server,
    ):
        template = Path(folder, "executor.yaml")
        template.write_text(TEMPLATE)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        executors = sparkconf.Executors(
            count=1,
            heap=512 << 20,
            template=sparkconf.Template(file=template, image="train", memory=1 << 30),
            pod=sparkconf.Pod("driver", "1234", "127.0.0.1", "default"),
        )
        here = {"spark.master": f"k8s://http://127.0.0.1:{server.server_port}"}
        train(archive, sparkconf.kubernetes(executors) | here, 1)  # waits for the executor
        for _, executor in Api.executors:
            executor.wait(timeout=60)
        Api.ended.set()
        server.shutdown()


if __name__ == "__main__":
    train_executors(Path(sys.argv[1]).resolve())
