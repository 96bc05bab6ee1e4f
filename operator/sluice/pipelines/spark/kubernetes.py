"""Read the pod of the driver and the template of its executors, and wait for the executors.

Nothing here calls the API server. Only Spark's JVM does, for executor pods. The driver asks the JVM
how many executors are registered.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Annotated

import structlog
import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from sluice.api.scalars.quantities import Bytes
from sluice.errors import InvalidSpec, WaitingForExecutors
from sluice.pipelines.spark.sparkconf import Executors, Pod, Template

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pyspark import SparkContext

_log = structlog.get_logger()

_POLL_SECONDS = 0.05
_LOOK_SECONDS = 1.0
_IDLE_SECONDS = 10.0

_MEMORY = Bytes("1Mi", "1Ti")

_Text = Annotated[str, BeforeValidator(lambda value: str(value) if value is not None else value)]


class _TemplatePart(BaseModel):
    """A part of a pod template, with the fields that are used here."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class _Resources(_TemplatePart):
    requests: dict[str, _Text] = {}
    limits: dict[str, _Text] = {}


class _Container(_TemplatePart):
    image: str
    pull_policy: str = Field(default="IfNotPresent", alias="imagePullPolicy")
    resources: _Resources = _Resources()


class _Spec(_TemplatePart):
    containers: list[_Container] = Field(min_length=1)


class _Document(_TemplatePart):
    spec: _Spec


def own_pod(environment: Mapping[str, str] = os.environ) -> Pod:
    """Return the pod of this process, from POD_NAME, POD_UID, POD_IP and POD_NAMESPACE.

    Raises:
        InvalidSpec: one of these variables is not set.
    """
    names = ("POD_NAME", "POD_UID", "POD_IP", "POD_NAMESPACE")
    missing = [name for name in names if not environment.get(name)]
    if missing:
        raise InvalidSpec(
            f"executors need {', '.join(missing)} in the environment of the driver",
            remedy="Set them from the pod's own fields (the downward API).",
        )
    return Pod(*(environment[name] for name in names))


def read_template(path: Path) -> Template:
    """Read the first container's image and resources from the template of the executors' pods.

    Raises:
        InvalidSpec: the file cannot be read, or is not a Pod with an image.
    """
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        container = _Document.model_validate(document).spec.containers[0]
        resources = container.resources
        memory = resources.limits.get("memory") or resources.requests.get("memory")
        return Template(
            file=path,
            image=container.image,
            pull_policy=container.pull_policy,
            cpu=resources.requests.get("cpu"),
            cpu_limit=resources.limits.get("cpu"),
            memory=None if memory is None else int(_MEMORY.read(memory)),
        )
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        reason = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    except OSError as error:
        reason = error.strerror or type(error).__name__
    except (yaml.YAMLError, ValueError) as error:
        reason = str(error)
    raise InvalidSpec(
        f"{path} is no template of a pod: {reason}",
        remedy="Delete the damaged template; it is made anew.",
    )


class Crew:
    """The executors of an application, whose number changes while it runs.

    Args:
        context: Spark's context.
        executors: the executors that Spark was asked for.
        seconds: how long to wait while there is no executor, before the copy gives up.
        check: called while waiting; an exception of it ends the waiting.
    """

    def __init__(
        self,
        context: SparkContext,
        executors: Executors,
        seconds: float,
        *,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self._context = context
        self._count = executors.count
        self._cores = executors.cores
        self._seconds = seconds
        self._check = check
        self._looked = self._last = float("-inf")

    @property
    def present(self) -> int:
        """The number of executors that are registered now."""
        # PySpark has no public way to ask.
        return int(self._context._jsc.sc().getExecutorIds().size())  # noqa: SLF001

    def slots(self) -> int:
        """Return how many tasks the registered executors run at once; never less than one runs."""
        return max(1, self.present) * self._cores

    def wait(self) -> None:
        """Wait for all executors.

        If only some have registered in time, the copy goes on with these. Others join later, when
        the cluster has room for them.

        Raises:
            WaitingForExecutors: no executor has registered in time.
        """
        deadline = time.monotonic() + self._seconds
        while (present := self.present) < self._count:
            self._check()
            if time.monotonic() > deadline:
                if not present:
                    raise self._missing()
                _log.warning("going on with fewer executors", present=present, asked=self._count)
                return
            time.sleep(_POLL_SECONDS)

    def check(self) -> None:
        """Raise WaitingForExecutors if there has been no executor for too long.

        It is called again and again while tasks run. Without it they would wait for ever once all
        executors are lost.
        """
        now = time.monotonic()
        if now - self._looked < _LOOK_SECONDS:
            return
        idle = now - self._looked > _IDLE_SECONDS  # no task has run, so no executor was missed
        self._looked = now
        if idle or self.present:
            self._last = now
        elif now - self._last > self._seconds:
            raise self._missing()

    def _missing(self) -> WaitingForExecutors:
        return WaitingForExecutors(
            f"none of {self._count} executors was there for {self._seconds:.0f} s"
        )
