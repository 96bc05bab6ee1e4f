"""Read the operator's configuration: a YAML file that the administrator owns (Helm values).

Profiles hold everything that makes a pod. Tenants choose a profile by name.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from sluice.api.scalars.quantities import Bytes, MilliCpu
from sluice.core.follow.catching_up import FAR
from sluice.errors import InvalidSpec
from sluice.kube.loop.served import Served

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Self


class Setting(BaseModel):
    """Base of the parts of the file: camelCase, unknown fields refused, immutable."""

    model_config = ConfigDict(
        alias_generator=to_camel, extra="forbid", frozen=True, validate_by_name=True
    )


class PodSize(Setting):
    """Size of a profile's pods."""

    resources: dict[str, dict[str, str | int]] = {
        "requests": {"cpu": "500m", "memory": "512Mi"},
        "limits": {"memory": "1Gi"},
    }
    scratch_size: str = "1Gi"


class FollowerSize(PodSize):
    """Size of a profile's pods that follow a source."""

    resources: dict[str, dict[str, str | int]] = {
        "requests": {"cpu": "50m", "memory": "128Mi"},
        "limits": {"memory": "512Mi"},
    }
    scratch_size: str = "128Mi"


class ExecutorSize(PodSize):
    """Size of a profile's executor pods."""

    resources: dict[str, dict[str, str | int]] = {
        "requests": {"cpu": "500m", "memory": "1Gi"},
        "limits": {"memory": "1Gi"},
    }
    cores: int = Field(default=1, ge=1, le=64)


class QuerySize(PodSize):
    """Size of a profile's pods that run a query."""

    resources: dict[str, dict[str, str | int]] = {
        "requests": {"cpu": "500m", "memory": "2Gi"},
        "limits": {"memory": "2Gi"},
    }


class MostResources(Setting):
    """The most that a tenant may ask for, for one pod."""

    cpu: Annotated[int, MilliCpu("1m", "10000")] = 4000
    memory: Annotated[int, Bytes("1Mi", "100Ti")] = 8 << 30


class Profile(Setting):
    """Runtime of copies that the administrator offers. See docs/operations.md.

    Attributes:
        ttl_seconds_after_finished: how long the Jobs of a copy stay once it has succeeded.
        failed_ttl_seconds_after_finished: how long a Job stays after any other end.
        history_limit: how many ended attempts keep their Jobs while a copy is not done.
        catch_up_from: bytes that a target may be behind the source that it follows, for a minute,
            before a driver stages and verifies them, in place of the follower.
    """

    image: str = ""
    service_account_name: str = "sluice-driver"
    slots: int = Field(default=2, ge=1, le=64)
    max_executors: int = Field(default=8, ge=0, le=256)
    driver: PodSize = PodSize()
    follower: FollowerSize = FollowerSize()
    executor: ExecutorSize = ExecutorSize()
    query: QuerySize = QuerySize()
    max_resources: MostResources = MostResources()
    node_selector: dict[str, str] = {}
    tolerations: list[dict[str, Any]] = []
    affinity: dict[str, Any] = {}
    priority_class_name: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    spark_conf: dict[str, str] = {}
    ttl_seconds_after_finished: int = Field(default=600, ge=60)
    failed_ttl_seconds_after_finished: int = Field(default=86_400, ge=60)
    history_limit: int = Field(default=1, ge=1, le=10)
    catch_up_from: Annotated[int, Bytes("1Mi", "100Ti")] = FAR


NamePattern = Annotated[str, Field(pattern=r"^[a-z0-9*]([a-z0-9*-]*[a-z0-9*])?$")]
"""A namespace's name, in which `*` stands for any characters."""


class Listen(Setting):
    """Address at which probes and metrics are served."""

    host: str = "0.0.0.0"  # noqa: S104 - a pod's probes come from outside it
    port: int = Field(default=8080, ge=0, le=65535)


class MetricsSettings(Setting):
    """Metrics of single resources, by name.

    Attributes:
        resources: whether each resource has a series with its state. Schedules always have theirs.
        max_resources: how many resources have series of their own.
    """

    resources: bool = False
    max_resources: int = Field(default=1000, ge=1, le=100_000)


class SinkHeader(Setting):
    """Header of each CloudEvent, whose value is in a file: it is a credential.

    Attributes:
        name: of the header.
        file: read before each delivery, so that a rotated Secret counts at once; empty for none.
    """

    name: str = Field(default="Authorization", pattern=r"^[A-Za-z][A-Za-z0-9-]{0,63}$")
    file: str = ""


class LeaseSettings(Setting):
    """Lease that one replica of the operator holds while it works, and the others wait for.

    Attributes:
        namespace: of the Lease.
        name: of the Lease; empty for none. Then no other operator may serve the same namespaces.
    """

    namespace: str = "default"
    name: str = ""


def _is_url(text: str) -> str:
    """Check a URL of HTTP, which may be empty."""
    if not text:
        return text
    parts = urlsplit(text)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("give a URL such as https://events.example.com/sluice")
    if parts.username is not None or parts.password is not None:
        raise ValueError("a URL has no credentials: put a header into a Secret")
    return text


def _is_url_or_root(text: str) -> str:
    """Check a URL of HTTP that paths follow on, which may be empty, or the root of paths."""
    if "?" in text or "#" in text:
        raise ValueError("give a URL that the path of a page follows on, without ? and #")
    return text if text == "/" else _is_url(text)


HttpUrl = Annotated[str, Field(max_length=2048), AfterValidator(_is_url)]
"""A URL without credentials; empty for none."""


class NoticeSettings(Setting):
    """Receiver of CloudEvents about final states. Only the administrator chooses it.

    Attributes:
        sink: URL that takes them, by http or https; empty for none.
        header: header that the sink asks for.
    """

    sink: HttpUrl = ""
    header: SinkHeader = SinkHeader()


class TracingHeaders(Setting):
    """Headers for the collector, whose values are credentials: a key of a Secret.

    Attributes:
        secret_name: a Secret of the pod's own namespace; empty for no headers.
        secret_key: its key, with the headers as OTEL_EXPORTER_OTLP_HEADERS has them.
    """

    secret_name: str = ""
    secret_key: str = "headers"  # noqa: S105 - a key's name


class TracingSettings(Setting):
    """Where drivers send spans. The operator itself goes by its environment.

    Attributes:
        endpoint: URL of a collector, for OTLP over HTTP; empty for none.
        headers: headers that the collector asks for.
        sampler: which traces are kept, as OTEL_TRACES_SAMPLER names it.
        sampler_argument: the share that is kept, for the samplers by share.
    """

    endpoint: HttpUrl = ""
    headers: TracingHeaders = TracingHeaders()
    sampler: str = "parentbased_always_on"
    sampler_argument: str = ""


AddressPattern = Annotated[
    str, Field(max_length=300, pattern=r"^(tcp|tls|http|https|\*)://[A-Za-z0-9.*:\[\]-]+$")
]
"""A server's URL, in which `*` stands for any characters."""


class StoreSettings(Setting):
    """Stores that may be opened.

    Attributes:
        allowed: their servers; empty for all. Volumes have none, and are not asked for.
        hold_secrets: whether a Secret is held while resources need its StreamStore. It takes the
            right to change Secrets.
        require_secret_label: whether Secrets need a label that allows StreamStores to use them.
    """

    allowed: list[AddressPattern] = []
    hold_secrets: bool = True
    require_secret_label: bool = False

    def allow(self, server: str) -> bool:
        """Tell whether a store at this server may be opened."""
        patterns = (re.escape(one).replace(r"\*", ".*") for one in self.allowed)
        return not self.allowed or any(re.fullmatch(one, server) for one in patterns)


class QuerySettings(Setting):
    """How queries run.

    Attributes:
        image: of their drivers, which has all of Spark; empty if this operator runs no queries.
        gateway: the URL of the gateway, for status.url, or `/` if only paths are known; empty if
            there is none.
    """

    image: str = ""
    gateway: Annotated[str, Field(max_length=2048), AfterValidator(_is_url_or_root)] = ""

    def page_of(self, namespace: str, name: str) -> str | None:
        """Return the address of a query's page, or its path; None if there is no gateway."""
        return f"{self.gateway.rstrip('/')}/q/{namespace}/{name}" if self.gateway else None


class OperatorSettings(Setting):
    """Settings of the operator, as the file has them.

    Attributes:
        cluster_id: tells clusters apart that share a store; empty for the UID of kube-system.
        namespaces: the namespaces to serve; empty for all.
        excluded_namespaces: namespaces that another operator serves; `*` for any characters.
        executor_namespaces: namespaces where drivers may make executors, since the ServiceAccount
            for that is there.
        resync_seconds: seconds between two rounds that find what the watches have missed.
        look_seconds: the most seconds for a store's answers to one look, or for one change.
        ambient_identity: whether buckets without a Secret are opened with the operator's own
            identity, in every namespace.
        stores: which stores are opened.
        metrics: which resources have metrics of their own.
        notices: where final states are told.
        lease: by which replicas take turns.
        tracing: where drivers send spans.
        queries: how queries run.
    """

    cluster_id: str = Field(default="", alias="clusterID")
    namespaces: list[str] = []
    excluded_namespaces: list[NamePattern] = []
    executor_namespaces: list[str] = []
    resync_seconds: float = Field(default=60, ge=1)
    look_seconds: float = Field(default=120, ge=10, le=600)
    ambient_identity: bool = False
    stores: StoreSettings = StoreSettings()
    metrics: MetricsSettings = MetricsSettings()
    listen: Listen = Listen()
    notices: NoticeSettings = NoticeSettings()
    lease: LeaseSettings = LeaseSettings()
    tracing: TracingSettings = TracingSettings()
    queries: QuerySettings = QuerySettings()
    image: str
    image_pull_policy: str = "IfNotPresent"
    image_pull_secrets: list[str] = []
    profiles: dict[str, Profile] = {"default": Profile()}

    @property
    def served(self) -> Served:
        """The namespaces whose resources are reconciled."""
        return Served(self.namespaces, self.excluded_namespaces)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read the file.

        Raises:
            InvalidSpec: it cannot be read; the message names the field.
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
