"""Check the runtime that a tenant asks for against the administrator's profiles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.api.fields.running import DriverSpec, ResourcesSpec
from sluice.api.scalars.quantities import written_bytes, written_cpu
from sluice.core.values.trouble import Trouble
from sluice.errors import InvalidSpec, ProfileNotFound

if TYPE_CHECKING:
    from sluice.api.fields.running import RuntimeSpec
    from sluice.api.registry import Copy
    from sluice.kube.loop.settings import OperatorSettings, Profile


def profile_trouble(
    resource: Copy, profile: Profile | None, settings: OperatorSettings, *, host: str | None = None
) -> Trouble | None:
    """Tell why the runtime that a copy asks for is not allowed; None if it is.

    Args:
        resource: the copy.
        profile: the profile that it names; None if there is no such profile.
        settings: the operator's settings.
        host: the namespace of a StreamStore in which the driver has to run; None for the copy's.
    """
    runtime = resource.spec.runtime
    if profile is None:
        return no_profile(runtime.profile, settings)
    if host is not None:
        refused = _guest_trouble(runtime, host)
        if refused is not None:
            return refused
    namespace = resource.metadata.namespace
    if runtime.executors and namespace not in settings.executor_namespaces:
        return Trouble.of(
            InvalidSpec(
                f"drivers may not make executors in namespace {namespace!r}",
                field="spec.runtime.executors",
                remedy="Set it to 0, or ask the administrator to add the namespace to the Helm "
                "value driver.namespaces.",
            )
        )
    if runtime.executors is not None and runtime.executors > profile.max_executors:
        return _too_much("spec.runtime.executors", runtime.executors, profile.max_executors)
    executor = runtime.executor
    return size_trouble(
        profile,
        driver=runtime.driver.resources,
        executor=ResourcesSpec() if executor is None else executor.resources,
    )


def no_profile(name: str, settings: OperatorSettings) -> Trouble:
    """Return the failure of a resource whose profile is not offered."""
    offered = ", ".join(sorted(settings.profiles)) or "none"
    return Trouble.of(
        ProfileNotFound(
            f"there is no runtime profile {name!r}; offered are: {offered}",
            field="spec.runtime.profile",
        )
    )


def size_trouble(profile: Profile, **pods: ResourcesSpec) -> Trouble | None:
    """Tell which size is more than a profile allows; None if none is.

    Args:
        profile: the profile.
        pods: the sizes that a tenant asks for, by the field of `spec.runtime`.
    """
    most = profile.max_resources
    for pod, resources in pods.items():
        for what, value, allowed, written in (
            ("cpu", resources.cpu, most.cpu, written_cpu),
            ("cpuLimit", resources.cpu_limit, most.cpu, written_cpu),
            ("memory", resources.memory, most.memory, written_bytes),
        ):
            if value is not None and value > allowed:
                field = f"spec.runtime.{pod}.resources.{what}"
                return _too_much(field, written(value), written(allowed))
    return None


def _guest_trouble(runtime: RuntimeSpec, host: str) -> Trouble | None:
    """Tell what of a runtime is not for a driver in the namespace of a StreamStore; None if all is.

    The copy's users have no rights there, so they choose nothing but a profile: no executors, whose
    driver could make pods, and no sizes, which count against the quota of that namespace.
    """
    field, what = None, "sizes of its own"
    if runtime.executors:
        field, what = "spec.runtime.executors", "executors"
    elif runtime.driver.resources != DriverSpec().resources:
        field = "spec.runtime.driver.resources"
    elif runtime.executor is not None:
        field = "spec.runtime.executor"
    if field is None:
        return None
    return Trouble.of(
        InvalidSpec(
            f"the driver has to run in namespace {host!r}, that of the StreamStore, and has no "
            f"{what} there",
            field=field,
            remedy="Leave the field out. The administrator can offer a profile with other sizes.",
        )
    )


def _too_much(field: str, wanted: object, most: object) -> Trouble:
    return Trouble.of(
        InvalidSpec(
            f"{wanted} is more than the runtime profile allows: {most} at most",
            field=field,
            remedy="Ask for less, or for another profile.",
        )
    )
