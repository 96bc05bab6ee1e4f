"""Errors of the processes and the cluster that run a copy. Another try mostly helps."""

from __future__ import annotations

from sluice.errors.base import Category, SluiceError


class InfrastructureError(SluiceError):
    """What runs the copy broke: the driver, a worker, the machine."""

    category = Category.INFRASTRUCTURE
    retryable = True
    default_remedy = "Run again: the copy goes on where it stopped."


class ResourceChanged(InfrastructureError):
    """Somebody changed or deleted a resource while it was worked on; it is looked at again."""


class ApiUnavailable(InfrastructureError):
    """The Kubernetes API refused a call of the operator, or did not answer."""

    default_remedy = "Check the operator's rights (docs/security.md) and the API server."


class DriverLost(InfrastructureError):
    """The driver's pod is gone, or ended without saying why."""

    default_remedy = "The next attempt goes on where this one stopped."


class DriverEvicted(InfrastructureError):
    """The node took the driver's pod off, for want of disk or memory."""

    default_remedy = "Give the runtime profile more scratch space or memory, if it happens again."


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
    """Somebody aborted this copy while it ran."""

    category = Category.INFRASTRUCTURE
    default_remedy = "Run it again if it is still wanted: it starts anew."
