"""The imports of a process at its start, which take most of that time."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Final

import pytest

DRIVER: Final = "import sluice.cli; sluice.cli.cli.get_command(None, 'driver')"
WORKER: Final = "import sluice.pipelines.spark.daemon"

TRACING: Final = {"opentelemetry", "requests", "sluice.tracing.otlp"}
OPERATOR: Final = {
    *("aiohttp", "kopf", "kubernetes", "prometheus_client"),
    *("sluice.administration", "sluice.handlers", "sluice.kube"),
}
ARCHIVES: Final = {
    *("obstore", "pyarrow"),
    *("sluice.archive.objects.s3", "sluice.archive.formats.parquet"),
}


def imported(code: str) -> set[str]:
    """Run code in a new interpreter, and return the names of its loaded modules and packages."""
    said = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport json, sys\nprint(json.dumps(list(sys.modules)))"],
        capture_output=True,
        check=True,
    )
    return set(json.loads(said.stdout))


@pytest.mark.parametrize("command", ["driver", "run", "plan", "verify"])
def test_what_runs_without_a_cluster_knows_no_kubernetes(command: str) -> None:
    """The command imports no Kubernetes client. That would take as long as a small copy."""
    found = imported(f"import sluice.cli; sluice.cli.cli.get_command(None, {command!r})")
    assert "sluice.pipelines" in found
    assert found.isdisjoint(OPERATOR | ARCHIVES | TRACING | {"pyspark", "grpc"})


def test_a_driver_imports_what_its_plan_needs_when_it_has_read_it() -> None:
    """Before a driver has read its plan, it imports no runner, console or template of pods."""
    found = imported(DRIVER)
    assert "sluice.pipelines.driver.driver" in found
    assert found.isdisjoint(
        TRACING
        | {
            "yaml",
            *("sluice.console", "sluice.pipelines.spark.kubernetes", "sluice.stores.pravega"),
            *("sluice.engine.archive.archive_run", "sluice.engine.scope.runner"),
            *("sluice.engine.copy.stream_copy", "sluice.engine.workloads"),
        }
    )


def test_a_worker_of_spark_imports_what_moves_bytes() -> None:
    """A worker of Spark imports the code of its tasks at its start, and no code of drivers."""
    found = imported(WORKER)
    assert {"pyspark.worker", "grpc", "sluice.stores.pravega.store"} <= found
    assert found.isdisjoint(
        OPERATOR
        | ARCHIVES
        | TRACING
        | {
            *("click", "rich", "structlog", "yaml"),
            *("sluice.api.kinds", "sluice.commands", "sluice.console", "sluice.pipelines.driver"),
            *("sluice.engine.archive", "sluice.engine.scope", "sluice.pipelines.programs"),
        }
    )


def test_importing_what_workers_need_starts_no_thread() -> None:
    """A process with threads cannot be forked: the child would wait for locks that they hold."""
    code = f"{WORKER}\nimport os\nassert len(os.listdir('/proc/self/task')) == 1"
    assert imported(code)


def test_a_follower_needs_no_spark() -> None:
    """A follower imports neither Spark nor archives, since it lives for months beside others."""
    found = imported("import sluice.engine.follow.work")
    assert "sluice.engine.copy.stream_copy" in found
    assert found.isdisjoint(OPERATOR | ARCHIVES | TRACING | {"pyspark", "grpc", "sluice.pipelines"})
