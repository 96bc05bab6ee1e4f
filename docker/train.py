# noqa: INP001 - a script of the Dockerfile's
"""Make the archive of Java classes from which the image's JVMs start in half the time.

    train.py ARCHIVE

The program runs a job as the image will, and notes the classes that Java loads. Then Java writes
them into the archive, in the form in which it keeps them in memory.

The job has an executor. A stand-in for the API server makes its pod, and starts a process instead.
A job in one process would load 23 more classes, of 11,000. The build fails if the job does. So it
is a first test of the image, too.
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
from itertools import count
from pathlib import Path
from typing import Any

from sluice.pipelines.spark import java, sparkconf
from sluice.pipelines.spark.application import HEAP, Application
from sluice.pipelines.spark.executor import arguments
from sluice.pipelines.spark.jvm import Jvm

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
    """A JVM that ends by itself, so that it writes its list of classes to the end."""

    def stop(self) -> None:
        """Let the JVM end by itself, and stop it after 60 s at the latest."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=60)
        super().stop()


class Lists:
    """The lists of classes that JVMs write, each with an environment from here."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = count()

    def environment(self) -> dict[str, str]:
        """Return an environment in which the next JVM writes a list."""
        path = self._folder / f"{next(self._numbers)}.list"
        return {"JAVA_TOOL_OPTIONS": f"-XX:DumpLoadedClassList={path}"}

    def merged(self) -> str:
        """Return all lists as one, without duplicates."""
        lines = [
            line
            for path in sorted(self._folder.glob("*.list"))
            for line in path.read_text().splitlines()
        ]
        return "\n".join(dict.fromkeys(lines)) + "\n"


class Api(BaseHTTPRequestHandler):
    """The part of an API server that Spark needs to make an executor.

    Its lists have the executors, since Spark takes executors in no list for lost.
    """

    protocol_version = "HTTP/1.1"
    lists: Lists
    executors: list[tuple[dict[str, Any], subprocess.Popen[bytes]]]
    ended: threading.Event

    def do_GET(self) -> None:
        """Answer with the driver's pod, with a list of it or of the executors, or with a watch."""
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
        """Start an executor in place of a pod."""
        pod = json.loads(self._body())
        environment = {
            item["name"]: item.get("value", "127.0.0.1")
            for item in pod["spec"]["containers"][0]["env"]
        }
        environment = {**os.environ, **environment, **self.lists.environment()}
        environment["SPARK_LOCAL_IP"] = "127.0.0.1"
        process = subprocess.Popen(  # noqa: S603 - a command of our own
            [java.java(), *arguments(environment)], env=environment
        )
        self.executors.append((pod, process))
        self._answer(pod, code=201)

    def do_DELETE(self) -> None:
        """Answer with success and do nothing, since executors end with their driver."""
        self._body()
        self._answer({"apiVersion": "v1", "kind": "Status", "status": "Success"})

    def _executors(self) -> list[dict[str, Any]]:
        """Return the executors' pods. A pod runs as long as its process."""
        return [
            {**pod, "status": {"phase": "Running" if process.poll() is None else "Failed"}}
            for pod, process in self.executors
        ]

    def _watch(self) -> None:
        """Send no events. Refuse a WebSocket, so that the client asks for plain HTTP."""
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
        """Log nothing."""

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def _answer(self, value: dict[str, Any], *, code: int = 200) -> None:
        body = json.dumps(value).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


# Sluice's own daemon imports all of Sluice, which is not here.
PLAIN = {"spark.python.daemon.module": "pyspark.daemon"}


def job(context: Any, tasks: int) -> None:
    """Run a job of this number of tasks, twice. Exit if a result is wrong."""
    for _ in range(2):
        doubled = context.parallelize(range(tasks), tasks).mapPartitions(lambda n: [sum(n) * 2])
        if sorted(doubled.collect()) != [2 * number for number in range(tasks)]:
            raise SystemExit("the job's result is wrong")


def train_local(lists: Lists) -> None:
    """Run a job in one process, as tests on this machine do: see hack/classes.py."""
    os.environ.update(lists.environment())
    with Application(sparkconf.local(2) | PLAIN, jvm=OrderlyJvm) as application:
        job(application.start(), 2)


def train_executors(lists: Lists, folder: Path) -> None:
    """Run a job in an executor."""
    template = folder / "executor.yaml"
    template.write_text(TEMPLATE)
    Api.lists, Api.executors, Api.ended = lists, [], threading.Event()
    with ThreadingHTTPServer(("127.0.0.1", 0), Api) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        executors = sparkconf.Executors(
            count=1,
            heap=512 << 20,
            template=sparkconf.Template(file=template, image="train", memory=1 << 30),
            pod=sparkconf.Pod("driver", "1234", "127.0.0.1", "default"),
        )
        os.environ.update(lists.environment())
        here = {"spark.master": f"k8s://http://127.0.0.1:{server.server_port}"}
        configuration = sparkconf.kubernetes(executors) | PLAIN | here
        with Application(configuration, jvm=OrderlyJvm) as application:
            job(application.start(), 1)  # this waits for the executor
        for _, executor in Api.executors:
            executor.wait(timeout=60)
        Api.ended.set()
        server.shutdown()


def write(archive: str, classes: Path) -> None:
    """Let Java write the archive."""
    # The serial collector can read an archive, but not write one.
    chosen = [word for word in java.options(HEAP, {}) if word != "-XX:+UseSerialGC"]
    subprocess.run(  # noqa: S603 - a command of our own
        [
            java.java(),
            "-Xshare:dump",
            "-Xlog:cds=error,gc*=off",
            f"-XX:SharedClassListFile={classes}",
            f"-XX:SharedArchiveFile={archive}",
            *chosen,
        ],
        check=True,
        stdout=subprocess.DEVNULL,
    )


def main() -> None:
    """Make the archive."""
    with tempfile.TemporaryDirectory() as folder:
        lists = Lists(Path(folder))
        train_executors(lists, Path(folder))
        del os.environ["JAVA_TOOL_OPTIONS"]
        classes = Path(folder, "classes")
        classes.write_text(lists.merged())
        write(sys.argv[1], classes)


if __name__ == "__main__":
    main()
