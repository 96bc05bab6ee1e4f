"""The operator's configuration: a YAML file that the administrator owns (Helm values).

Tenants choose one of the profiles by name; everything that makes a pod is in them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from sluice.api.fields.quantities import Bytes, MilliCpu
from sluice.errors import InvalidSpec
from sluice.kube.loop.served import Served

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Self


class Setting(BaseModel):
    """A part of the file: camelCase, unknown fields refused, immutable."""

    model_config = ConfigDict(
        alias_generator=to_camel, extra="forbid", frozen=True, validate_by_name=True
    )


class PodSize(Setting):
    """One kind of pod of a profile."""

    resources: dict[str, dict[str, str | int]] = {
        "requests": {"cpu": "500m", "memory": "512Mi"},
        "limits": {"memory": "1Gi"},
    }
    scratch_size: str = "1Gi"


class ExecutorSize(PodSize):
    """The executor pods of a profile."""

    resources: dict[str, dict[str, str | int]] = {
        "requests": {"cpu": "500m", "memory": "1Gi"},
        "limits": {"memory": "1Gi"},
    }
    cores: int = Field(default=1, ge=1, le=64)


class MostResources(Setting):
    """The most that a tenant may ask for, for one pod."""

    cpu: Annotated[int, MilliCpu("1m", "10000")] = 4000
    memory: Annotated[int, Bytes("1Mi", "100Ti")] = 8 << 30


class Profile(Setting):
    """What a copy runs on, as the administrator offers it. See docs/operations.md."""

    image: str = ""
    service_account_name: str = "sluice-driver"
    slots: int = Field(default=2, ge=1, le=64)
    max_executors: int = Field(default=8, ge=0, le=256)
    driver: PodSize = PodSize()
    executor: ExecutorSize = ExecutorSize()
    max_resources: MostResources = MostResources()
    node_selector: dict[str, str] = {}
    tolerations: list[dict[str, Any]] = []
    affinity: dict[str, Any] = {}
    priority_class_name: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    spark_conf: dict[str, str] = {}
    ttl_seconds_after_finished: int = Field(default=86_400, ge=60)


NamePattern = Annotated[str, Field(pattern=r"^[a-z0-9*]([a-z0-9*-]*[a-z0-9*])?$")]
"""A namespace's name, in which `*` stands for any characters."""


class Listen(Setting):
    """Where probes and metrics are served."""

    host: str = "0.0.0.0"  # noqa: S104 - a pod's probes come from outside it
    port: int = Field(default=8080, ge=0, le=65535)


class OperatorSettings(Setting):
    """The file.

    Attributes:
        cluster_id: tells clusters apart that share a store; empty for the UID of kube-system.
        namespaces: watched; empty for all.
        excluded_namespaces: not served, as another operator serves them; `*` for any characters.
        executor_namespaces: where drivers may make executors, since their ServiceAccount is there.
        resync_seconds: between two looks at everything.
        look_seconds: that one look at a resource may ask a store for, or one step change something.
        ambient_identity: whether buckets without a Secret are opened with the operator's own
            identity, of every namespace.
    """

    cluster_id: str = Field(default="", alias="clusterID")
    namespaces: list[str] = []
    excluded_namespaces: list[NamePattern] = []
    executor_namespaces: list[str] = []
    resync_seconds: float = Field(default=60, ge=1)
    look_seconds: float = Field(default=120, ge=10, le=600)
    ambient_identity: bool = False
    listen: Listen = Listen()
    image: str
    image_pull_policy: str = "IfNotPresent"
    image_pull_secrets: list[str] = []
    profiles: dict[str, Profile] = {"default": Profile()}

    @property
    def served(self) -> Served:
        """The namespaces whose resources are worked on."""
        return Served(self.namespaces, self.excluded_namespaces)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read the file.

        Raises:
            InvalidSpec: it cannot be read; the text names the field.
        """
        try:
            return cls.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")) or {})
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise InvalidSpec(f"cannot read {path}: {error}", field="--config") from error
        except ValidationError as error:
            problems = "; ".join(
                f"{'.'.join(map(str, p['loc']))}: {p['msg']}"
                for p in error.errors(include_url=False, include_input=False)
            )
            raise InvalidSpec(
                f"{path}: {problems}",
                field="--config",
                remedy="Correct the Helm values, or the file.",
            ) from error
