"""Build the variables by which a driver sends its spans, and goes on with the operator's trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice import tracing

if TYPE_CHECKING:
    from sluice.kube.api.kinds import Object
    from sluice.kube.loop.settings import TracingSettings


def trace_variables(settings: TracingSettings, context: str) -> list[Object]:
    """Build the variables, behind those of the pod's names; none if drivers are not traced.

    A Secret with headers is one of the driver's namespace. Without it the driver starts all the
    same, and the collector may refuse its spans.

    Args:
        settings: where and how spans are sent.
        context: the context of the span in which the Job is made.
    """
    if not settings.endpoint:
        return []
    names = ("namespace.name=$(POD_NAMESPACE)", "pod.name=$(POD_NAME)", "pod.uid=$(POD_UID)")
    plain = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": settings.endpoint,
        "OTEL_TRACES_SAMPLER": settings.sampler,
        "OTEL_TRACES_SAMPLER_ARG": settings.sampler_argument,
        "OTEL_RESOURCE_ATTRIBUTES": ",".join(f"k8s.{one}" for one in names),
        tracing.VARIABLE: context,
    }
    found: list[Object] = [{"name": name, "value": value} for name, value in plain.items() if value]
    if settings.headers.secret_name:
        reference = {
            "name": settings.headers.secret_name,
            "key": settings.headers.secret_key,
            "optional": True,
        }
        found.append(
            {"name": "OTEL_EXPORTER_OTLP_HEADERS", "valueFrom": {"secretKeyRef": reference}}
        )
    return found
