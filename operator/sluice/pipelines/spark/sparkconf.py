"""Make Spark's configuration, for tasks in this process and for tasks in executor pods.

The driver is always in client mode: its JVM is a child of the process that runs the copy. With
executors, Spark makes their pods itself. It needs the right to create, get, list, watch and delete
pods in its namespace. Features of Spark that need further rights are turned off here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sluice.errors import InvalidSpec

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

TRIES = 4
"""How often Spark tries a task; plain `local[N]` would give it one try."""

DRIVER_PORT = 7078
BLOCK_PORT = 7079
"""Both ports are fixed, so that a NetworkPolicy can name them."""

LOOPBACK = "127.0.0.1"

MASTER = "k8s://https://kubernetes.default.svc"

_MIB = 1 << 20
_LEAST_OVERHEAD = 256 * _MIB
_LONGEST_PREFIX = 40  # Spark refuses more than 47, and a pod's name more than 63

DAEMON = "sluice.pipelines.spark.daemon"
"""The module of the process from which Python workers are forked."""

_COMMON = {
    "spark.app.name": "sluice",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.python.worker.reuse": "true",
    "spark.python.daemon.module": DAEMON,
    "spark.python.authenticate.socketTimeout": "60s",
    # Spark starts workers by `python -m`, which would import modules of the working directory.
    "spark.executorEnv.PYTHONSAFEPATH": "1",
    # Without these, glibc does not return freed large blocks to the system if a small block lies
    # behind them. A worker's memory would then grow with the bytes that it has moved.
    "spark.executorEnv.MALLOC_MMAP_THRESHOLD_": str(4 * _MIB),
    "spark.executorEnv.MALLOC_TRIM_THRESHOLD_": str(32 * _MIB),
}

_OURS = (
    "spark.master",
    "spark.submit.",
    "spark.authenticate",
    "spark.driver.host",
    "spark.driver.port",
    "spark.kubernetes.namespace",
    "spark.kubernetes.driver.pod.name",
    "spark.kubernetes.executor.podTemplate",
    "spark.kubernetes.executor.podNamePrefix",
)
"""Prefixes of settings that profiles may not change: the copy would not run, or not be safe."""


@dataclass(frozen=True, slots=True)
class Pod:
    """The pod that a driver runs in, as the downward API describes it."""

    name: str
    uid: str
    ip: str
    namespace: str


@dataclass(frozen=True, slots=True)
class Template:
    """A pod template, and its fields that Spark overwrites. These are set in Spark's configuration.

    Attributes:
        file: the pod template.
        image: the image of the first container.
        pull_policy: the pull policy of that image.
        cpu: the requested processors, as a quantity.
        cpu_limit: the limit of processors, as a quantity.
        memory: bytes for the whole container; None when the template does not say.
    """

    file: Path
    image: str
    pull_policy: str = "IfNotPresent"
    cpu: str | None = None
    cpu_limit: str | None = None
    memory: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Executors:
    """The executors that a copy asks for.

    Attributes:
        count: their number.
        cores: tasks at once in each.
        heap: heap of each executor's JVM, in bytes; the rest of its memory is for Python.
        template: the template of their pods.
        pod: the driver's pod.
    """

    count: int
    cores: int = 1
    heap: int
    template: Template
    pod: Pod

    @property
    def slots(self) -> int:
        """Tasks at once in all executors."""
        return self.count * self.cores


def local(slots: int, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the configuration for tasks in Python workers of this process's JVM.

    Args:
        slots: tasks at once.
        extra: settings that an administrator adds.

    Raises:
        InvalidSpec: a profile may not change a setting of `extra`.
    """
    return {
        **_COMMON,
        **checked(extra or {}),
        "spark.master": f"local[{slots},{TRIES}]",
        "spark.driver.host": LOOPBACK,
        "spark.driver.bindAddress": LOOPBACK,
    }


def kubernetes(executors: Executors, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the configuration for tasks in executor pods, which Spark makes from a template.

    Args:
        executors: the executors.
        extra: settings that an administrator adds.

    Raises:
        InvalidSpec: a profile may not change a setting of `extra`, or the memory is too small.
    """
    pod, template = executors.pod, executors.template
    sizes = {
        "spark.executor.instances": str(executors.count),
        "spark.executor.cores": str(executors.cores),
        "spark.executor.memory": megabytes(executors.heap),
        "spark.kubernetes.executor.request.cores": template.cpu,
        "spark.kubernetes.executor.limit.cores": template.cpu_limit,
        "spark.executor.memoryOverhead": _overhead(executors),
    }
    return {
        **_COMMON,
        # The driver waits for executors itself (see `Crew.wait`), so Spark must not wait as well.
        "spark.scheduler.minRegisteredResourcesRatio": "0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "0s",
        "spark.kubernetes.allocation.batch.delay": "200ms",
        "spark.kubernetes.allocation.batch.size": "10",
        # Spark notices a vanished pod within 20 s, and a vanished node within 60 s.
        "spark.kubernetes.executor.apiPollingInterval": "10s",
        "spark.kubernetes.executor.missingPodDetectDelta": "10s",
        "spark.network.timeout": "60s",
        "spark.executor.maxNumFailures": str(max(10, 4 * executors.count)),
        "spark.executor.failuresValidityInterval": "10m",
        "spark.task.maxFailures": str(TRIES),
        **checked(extra or {}),
        "spark.master": MASTER,
        "spark.submit.deployMode": "client",
        "spark.authenticate": "true",
        "spark.network.crypto.enabled": "true",
        "spark.driver.host": pod.ip,
        "spark.driver.bindAddress": pod.ip,
        "spark.driver.port": str(DRIVER_PORT),
        "spark.blockManager.port": str(BLOCK_PORT),
        "spark.kubernetes.namespace": pod.namespace,
        "spark.kubernetes.driver.pod.name": pod.name,
        "spark.kubernetes.executor.podNamePrefix": prefix(pod),
        "spark.kubernetes.executor.podTemplateFile": str(template.file),
        "spark.kubernetes.container.image": template.image,
        "spark.kubernetes.container.image.pullPolicy": template.pull_policy,
        # Each of these saves the driver's Role the right to one more kind of object.
        "spark.kubernetes.executor.disableConfigMap": "true",
        "spark.kubernetes.driver.service.deleteOnTermination": "false",
        "spark.kubernetes.driver.ownPersistentVolumeClaim": "false",
        "spark.kubernetes.driver.reusePersistentVolumeClaim": "false",
        **{key: value for key, value in sizes.items() if value is not None},
    }


def prefix(pod: Pod) -> str:
    """Return a prefix for the names of executor pods that is unique to this driver's pod.

    It begins with a letter or a digit, and has lower-case letters, digits and `-` only.
    """
    name = re.sub(r"[^a-z0-9-]", "-", pod.name.lower()).strip("-")
    tail = re.sub(r"[^a-z0-9]", "", pod.uid.lower())[:8]
    return f"{name[: _LONGEST_PREFIX - len(tail) - 1].rstrip('-')}-{tail}"


def checked(extra: Mapping[str, str]) -> Mapping[str, str]:
    """Return a profile's settings after checking that none of them is reserved for Sluice.

    Raises:
        InvalidSpec: a setting is reserved, or is not a setting of Spark.
    """
    for key in extra:
        if not key.startswith("spark.") or key.startswith(_OURS):
            raise InvalidSpec(
                f"{key!r} is not a setting that a profile may give Spark",
                remedy="Take it out of the profile's sparkConf.",
            )
    return extra


def megabytes(size: int) -> str:
    """Return a size in Java's notation, rounded down: 512 MiB is `512m`."""
    return f"{size // _MIB}m"


def _overhead(executors: Executors) -> str | None:
    """Return the part of an executor's memory that is left for Python; None to let Spark choose."""
    memory = executors.template.memory
    if memory is None:
        return None
    rest = memory - executors.heap
    if rest < _LEAST_OVERHEAD:
        raise InvalidSpec(
            f"executors have {memory // _MIB} MiB, of which the JVM takes "
            f"{executors.heap // _MIB} MiB: {_LEAST_OVERHEAD // _MIB} MiB have to remain",
            field="spec.runtime.executor.resources.memory",
            remedy="Give executors more memory.",
        )
    return megabytes(rest)
