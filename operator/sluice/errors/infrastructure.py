"""Errors of the processes and the cluster that run a copy. Another try mostly helps."""

from __future__ import annotations

from sluice.errors.base import Category, SluiceError


class InfrastructureError(SluiceError):
    """The driver, a worker or the machine failed."""

    category = Category.INFRASTRUCTURE
    retryable = True
    default_remedy = "Run again: the copy goes on where it stopped."


class ResourceChanged(InfrastructureError):
    """The resource was changed or deleted while the operator worked on it."""

    default_remedy = "Nothing: the operator looks at the resource again."


class ApiUnavailable(InfrastructureError):
    """The Kubernetes API refused a call of the operator, or did not answer."""

    default_remedy = "Check the operator's rights (docs/security.md) and the API server."


class DriverLost(InfrastructureError):
    """The driver's pod is gone, or ended without giving a reason."""

    default_remedy = "The next attempt goes on where this one stopped."


class DriverEvicted(InfrastructureError):
    """The node evicted the driver's pod, for lack of disk or memory."""

    default_remedy = "If it happens again, give the runtime profile more scratch space or memory."


class DriverOutOfMemory(InfrastructureError):
    """The driver's container used more memory than its limit."""

    default_remedy = "Raise spec.runtime.driver.resources.memory."


class DeadlineExceeded(InfrastructureError):
    """The copy took longer than `spec.activeDeadlineSeconds`."""

    retryable = False
    default_remedy = (
        "Raise spec.activeDeadlineSeconds, then annotate the copy with sluice.dev/requestedAt: "
        "it goes on where it stopped."
    )


class CopyAborted(SluiceError):
    """The copy's journal is gone: it was aborted while it ran, or the store lost its data."""

    category = Category.INFRASTRUCTURE
    default_remedy = "Run it again if you still need it: it starts anew."


class QuerySuperseded(InfrastructureError):
    """Another attempt of the query has begun, and goes on in place of this one."""

    retryable = False
    default_remedy = "Nothing, if that was meant: each query runs once. Else stop one of the two."
