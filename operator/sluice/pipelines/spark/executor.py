"""Turn this process into a Spark executor: the image's entrypoint for the argument `executor`.

Spark describes the executor in environment variables. It leaves it to the image to build Java's
command line from them.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from sluice.pipelines.spark.java import java, options

if TYPE_CHECKING:
    from collections.abc import Mapping

MAIN = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"

_ARGUMENTS = {
    "--driver-url": "SPARK_DRIVER_URL",
    "--executor-id": "SPARK_EXECUTOR_ID",
    "--cores": "SPARK_EXECUTOR_CORES",
    "--app-id": "SPARK_APPLICATION_ID",
    "--hostname": "SPARK_EXECUTOR_POD_IP",
    "--resourceProfileId": "SPARK_RESOURCE_PROFILE_ID",
    "--podName": "SPARK_EXECUTOR_POD_NAME",
}


def arguments(environment: Mapping[str, str]) -> list[str]:
    """Return Java's arguments for the executor that the environment describes.

    Raises:
        KeyError: a variable is missing.
    """
    return [
        *options(environment["SPARK_EXECUTOR_MEMORY"], {}),
        *_settings(environment),
        MAIN,
        *(word for name, key in _ARGUMENTS.items() for word in (name, environment[key])),
    ]


def _settings(environment: Mapping[str, str]) -> list[str]:
    """Return the driver's `-Dspark.` options, in its order. `java.options` has all others."""
    found = [
        (int(match[1]), value)
        for key, value in environment.items()
        if (match := re.fullmatch(r"SPARK_JAVA_OPT_(\d+)", key))
    ]
    return [value for _, value in sorted(found) if value.startswith("-Dspark.")]


def main() -> None:
    """Replace this process by the executor's JVM."""
    os.environ["SPARK_LOCAL_IP"] = os.environ["SPARK_EXECUTOR_POD_IP"]
    program = java()
    os.execv(program, [program, *arguments(os.environ)])  # noqa: S606 - no shell is the point


if __name__ == "__main__":
    main()
