"""Spark applications, which Sluice starts without Spark's own scripts."""

import importlib.util
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle
from structlog.testing import capture_logs

from sluice.config import Settings
from sluice.core.values.model import StoreAddress
from sluice.errors import InfrastructureError
from sluice.pipelines.spark import java, sparkconf
from sluice.pipelines.spark.application import Application, local_spark
from sluice.pipelines.spark.lost import SparkLost
from sluice.pipelines.spark.tasks import SparkExecutor
from support.until import until

ADDRESS = StoreAddress(uri="tcp://127.0.0.1:1")

NOTHING: Any = object()
"""A value that is no slice."""

BLOCK = 8 << 20

LEFT_OUT = {
    "-XX:+IgnoreUnrecognizedVMOptions": "it stands before the others",
    "--add-modules=jdk.incubator.vector": "for machine learning",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE": "weakens TLS",
    "-Dderby.connection.requireAuthentication=false": "for Derby",
}


@pytest.fixture(autouse=True)
def _by_value() -> Iterator[None]:
    """Send functions of this module to workers by value, since workers cannot import tests."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    yield
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


def doubled(context: Any) -> list[int]:
    """Return the result of a small job."""
    tasks = context.parallelize(range(4), 2).mapPartitions(lambda part: [2 * n for n in part])
    return sorted(tasks.collect())


def kept(_: object) -> list[int]:
    """Return the bytes that a worker keeps of 16 freed blocks with small ones between them."""

    def used() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    for _ in range(2):  # large blocks from which glibc would adapt its threshold
        bytearray(b"x") * BLOCK
    before = used()
    blocks, between = [], []
    for _ in range(16):
        blocks.append(bytearray(b"x") * BLOCK)
        between.append(bytearray(4096))
    most = used() - before
    blocks.clear()
    return [most, used() - before]


def findable(_: object) -> list[bool]:
    """Return whether a worker would import a file of this name."""
    return [importlib.util.find_spec("intruder") is not None]


def test_workers_import_nothing_from_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers run no code of the working directory, which may be another user's."""
    (tmp_path / "intruder.py").write_text("raise SystemExit('imported')")
    monkeypatch.chdir(tmp_path)
    with local_spark(1) as context:
        assert context.parallelize(range(1), 1).mapPartitions(findable).collect() == [False]


def test_java_gets_the_options_that_sparks_launcher_gives() -> None:
    """Java gets the options of Spark's own launcher. A Spark with others fails this test."""
    home = java.jars().parent
    launcher = [
        *(java.java(), "-cp", f"{java.jars()}/*", "org.apache.spark.launcher.Main"),
        *("org.apache.spark.deploy.SparkSubmit", "pyspark-shell"),
    ]
    said = subprocess.run(
        launcher,
        env={**os.environ, "SPARK_HOME": str(home), "SPARK_SCALA_VERSION": "2.13"},
        capture_output=True,
        check=True,
    )
    words = said.stdout.decode().strip().split("\0")
    first = words.index("-XX:+IgnoreUnrecognizedVMOptions")
    wanted = words[first : words.index("org.apache.spark.deploy.SparkSubmit")]
    assert [word for word in wanted if word not in LEFT_OUT] == [
        word for word in java.MODULE_OPTIONS if word not in LEFT_OUT
    ]


@pytest.mark.exhaustive
def test_one_application_after_the_other_in_one_process() -> None:
    """One application after another runs in one process: each JVM ends with its block."""
    pids = []
    for _ in range(2):
        with local_spark(2) as context:
            assert doubled(context) == [0, 2, 4, 6]
            pids.append(context._gateway.proc.pid)  # type: ignore[union-attr]
        assert not Path(f"/proc/{pids[-1]}").exists()
    assert pids[0] != pids[1]


@pytest.mark.exhaustive
def test_a_worker_gives_large_blocks_back() -> None:
    """A worker's memory depends on its present bytes, not on those that it has moved."""
    with local_spark(1) as context:
        ((most, left),) = context.parallelize([0], 1).map(kept).collect()
    assert most >= 16 * BLOCK
    assert left < BLOCK


@pytest.mark.exhaustive
def test_what_spark_writes_goes_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark writes all files into one temporary folder, and nothing is left."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with local_spark(1) as context:
        doubled(context)
        (folder,) = tmp_path.iterdir()
        assert any(folder.iterdir())
    assert list(tmp_path.iterdir()) == []


def test_a_jvm_that_dies_ends_the_block_with_what_became_of_it() -> None:
    """After a JVM's death the next task fails at once, instead of trying for minutes."""

    def lose_it() -> None:
        with Application(sparkconf.local(1)) as application:
            context = application.start()
            executor = SparkExecutor(
                context, sources=[ADDRESS], target=ADDRESS, settings=Settings()
            )
            assert executor.slots == 1
            application._jvm.process.kill()
            with pytest.raises(SparkLost):
                executor.submit(NOTHING).result(60)
            _ = executor.slots

    with pytest.raises(InfrastructureError, match="JVM ended with code -9") as caught:
        lose_it()
    assert caught.value.retryable


@pytest.mark.exhaustive
def test_a_task_that_fails_is_no_loss_of_spark() -> None:
    """A failed task's error belongs to the task, and other tasks run."""
    with local_spark(1) as context:
        executor = SparkExecutor(context, sources=[ADDRESS], target=ADDRESS, settings=Settings())
        with pytest.raises(InfrastructureError, match="a task failed"):
            executor.submit(NOTHING).result(60)
        assert doubled(context) == [0, 2, 4, 6]


def test_what_spark_refuses_is_said() -> None:
    """The error contains Spark's own words."""
    configuration = {**sparkconf.local(1), "spark.master": "nowhere://"}
    application = Application(configuration)
    with pytest.raises(InfrastructureError, match="nowhere"), application:
        application.start()


def test_what_spark_says_comes_as_lines_of_the_log() -> None:
    """Spark's warnings become warnings in the driver's log."""
    configuration = {**sparkconf.local(1), "spark.executor.heartbeatInterval": "300s"}
    with capture_logs() as logs, Application(configuration) as application:
        with pytest.raises(InfrastructureError, match="heartbeat"):
            application.start()
        until(
            "the driver's log has the error",
            lambda: any(
                log["log_level"] == "error" and log.get("logger") == "SparkContext" for log in logs
            ),
        )


@pytest.mark.exhaustive
def test_a_signal_to_the_process_group_spares_the_jvm() -> None:
    """Ctrl-C reaches only the process, which then stops Spark in order."""
    with local_spark(1) as context:
        pid = context._gateway.proc.pid  # type: ignore[union-attr]
        assert os.getpgid(pid) != os.getpgid(0)
        assert os.getpgid(pid) == pid
        os.kill(pid, signal.SIGCONT)
        assert doubled(context) == [0, 2, 4, 6]
