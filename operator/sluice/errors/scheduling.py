"""Errors of a cluster that has no room for a copy, or does not let it run."""

from __future__ import annotations

from sluice.errors.base import Category
from sluice.errors.infrastructure import InfrastructureError


class SchedulingError(InfrastructureError):
    """There is no room to run the copy."""

    category = Category.SCHEDULING


class Unschedulable(SchedulingError):
    """No node takes the pod."""

    default_remedy = "Make room, or ask for less in spec.runtime; the pod starts when there is."


class QuotaExceeded(SchedulingError):
    """The namespace's resource quota is used up."""

    default_remedy = "Raise the namespace's quota, or ask for less in spec.runtime."


class ImagePullFailed(SchedulingError):
    """The image of the runtime profile is not to be had."""

    default_remedy = "Ask the administrator to correct the profile's image or pull secrets."


class DriverNotStarted(SchedulingError):
    """The driver's pod did not start in time, and nothing that is known as an obstacle is told."""

    default_remedy = (
        "Look at the pod, its events and its node with kubectl describe; the next attempt makes "
        "another pod."
    )


class WaitingForExecutors(SchedulingError):
    """Not one of the executors that a copy asked for came in time, or none stayed."""

    default_remedy = (
        "Look at the executors' pods and their events; make room for them, lower their resources, "
        "or set spec.runtime.executors to 0."
    )


class PodRefused(SchedulingError):
    """The cluster's rules forbid the driver's pod, or it cannot be set up."""

    default_remedy = "Ask the administrator: the message has the cluster's own words."
