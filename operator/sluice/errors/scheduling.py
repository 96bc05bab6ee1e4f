"""Errors of a cluster that has no room for a copy, or does not let it run."""

from __future__ import annotations

from sluice.errors.base import Category
from sluice.errors.infrastructure import InfrastructureError


class SchedulingError(InfrastructureError):
    """There is no room to run the copy."""

    category = Category.SCHEDULING


class Unschedulable(SchedulingError):
    """The scheduler finds no node for the pod."""

    default_remedy = (
        "Make room, or ask for less in spec.runtime. The pod starts once a node has room."
    )


class QuotaExceeded(SchedulingError):
    """The namespace's resource quota is used up."""

    default_remedy = "Raise the namespace's quota, or ask for less in spec.runtime."


class ImagePullFailed(SchedulingError):
    """The image of the runtime profile cannot be pulled."""

    default_remedy = "Ask the administrator to correct the profile's image or pull secrets."


class DriverNotStarted(SchedulingError):
    """The driver's pod did not start in time, for an unknown reason."""

    default_remedy = (
        "Look at the pod, its events and its node with kubectl describe. The next attempt makes "
        "another pod."
    )


class WaitingForExecutors(SchedulingError):
    """None of the executors of the copy started in time, or all of them were lost."""

    default_remedy = (
        "Look at the executors' pods and their events. Make room for them, lower their resources, "
        "or set spec.runtime.executors to 0."
    )


class PodRefused(SchedulingError):
    """The cluster's rules forbid the driver's pod, or it cannot be set up."""

    default_remedy = "Ask the administrator. The message quotes the cluster."
