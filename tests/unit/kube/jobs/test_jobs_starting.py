"""The reason why a driver does not start, as read from its Job, pods and events."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.reconcile.jobs import driver, event, job, look, pod

if TYPE_CHECKING:
    from sluice.kube.api.kinds import Object

UNSCHEDULABLE = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/3 nodes are available: 3 Insufficient memory.",
}
QUOTA = (
    'Error creating: pods "x" is forbidden: exceeded quota: small, requested: requests.cpu=500m, '
    "used: requests.cpu=1, limited: requests.cpu=1"
)
UNLIMITED = (
    'Error creating: pods "x" is forbidden: failed quota: compute: must specify limits.cpu for: '
    "driver"
)
REFUSED = 'Error creating: pods "x" is forbidden: violates PodSecurity "restricted:latest"'
MISSING_LOGIN = 'MountVolume.SetUp failed for volume "credentials-0" : secret "login" not found'
MISSING_KEY = (
    'MountVolume.SetUp failed for volume "credentials-0" : '
    "references non-existent secret key: password"
)
NO_PLAN = 'MountVolume.SetUp failed for volume "run" : configmap "orders-plan" not found'
SLOW_NODE = (
    'MountVolume.SetUp failed for volume "controls" : failed to sync configmap cache: timed out '
    "waiting for the condition"
)
BACK_OFF = {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "nowhere/sluice"'}
NO_CONFIG = {"reason": "CreateContainerConfigError", "message": "container has runAsNonRoot"}


@pytest.mark.parametrize(
    ("pods", "events", "reason", "words"),
    [
        pytest.param([], [], None, "", id="nothing yet"),
        pytest.param([pod("Pending")], [], None, "", id="just pending"),
        pytest.param(
            [pod("Pending", driver(waiting={"reason": "ContainerCreating"}))],
            [event("Pulling", "Pulling image"), event("Scheduled", "Successfully assigned")],
            None,
            "",
            id="starting",
        ),
        pytest.param(
            [pod("Pending", conditions=[UNSCHEDULABLE])],
            [],
            "Unschedulable",
            "Insufficient memory",
            id="unschedulable",
        ),
        pytest.param(
            [pod("Pending", conditions=[UNSCHEDULABLE | {"status": "True"}])],
            [],
            None,
            "",
            id="scheduled",
        ),
        pytest.param(
            [pod("Pending", driver(waiting=BACK_OFF))],
            [],
            "ImagePullFailed",
            "nowhere/sluice",
            id="no image",
        ),
        pytest.param(
            [pod("Pending", driver(waiting=NO_CONFIG))],
            [],
            "PodRefused",
            "runAsNonRoot",
            id="no container",
        ),
        pytest.param([], [event("FailedCreate", QUOTA)], "QuotaExceeded", "small", id="quota"),
        pytest.param(
            [], [event("FailedCreate", REFUSED)], "PodRefused", "restricted", id="refused"
        ),
        pytest.param(
            [pod("Pending")],
            [event("FailedMount", MISSING_LOGIN)],
            "SecretNotFound",
            'secret "login" not found',
            id="no secret",
        ),
        pytest.param(
            [pod("Pending")],
            [event("FailedMount", MISSING_KEY)],
            "SecretNotFound",
            "password",
            id="no key",
        ),
        pytest.param(
            [pod("Pending")], [event("FailedMount", NO_PLAN)], "PodRefused", "plan", id="no plan"
        ),
        pytest.param([pod("Pending")], [event("FailedMount", SLOW_NODE)], None, "", id="slow node"),
        pytest.param([], [event("FailedMount", NO_PLAN)], None, "", id="mount of a pod of before"),
        pytest.param(
            [],
            [event("FailedCreate", REFUSED), event("FailedCreate", QUOTA)],
            "QuotaExceeded",
            "small",
            id="the latest event counts",
        ),
    ],
)
def test_why_a_driver_does_not_start_is_in_the_clusters_own_words(
    pods: list[Object], events: list[Object], reason: str | None, words: str
) -> None:
    """The pod's own reason comes first, then the latest event that reports trouble."""
    trouble = look(job(), *pods, events=tuple(events)).trouble
    assert (trouble.reason if trouble else None) == reason
    assert words in (trouble.message if trouble else "")


@pytest.mark.parametrize(
    ("sizes", "ways"),
    [
        ("limits.cpu for: driver", ("Set cpu and cpuLimit", "LimitRange", "administrator")),
        (
            "limits.ephemeral-storage for: driver; requests.ephemeral-storage for: driver",
            ("limits.ephemeral-storage and requests.ephemeral-storage", "administrator"),
        ),
        ("limits.cpu,limits.memory for: driver", ("default for limits.cpu and limits.memory",)),
    ],
)
def test_a_quota_on_a_size_that_pods_do_not_state_is_named_with_a_remedy(
    sizes: str, ways: tuple[str, ...]
) -> None:
    """The namespace's users can carry out the remedy themselves."""
    said = UNLIMITED.replace("limits.cpu for: driver", sizes)
    trouble = look(job(), events=(event("FailedCreate", said),)).trouble
    assert trouble is not None
    assert trouble.reason == "PodRefused"
    assert "the ResourceQuota 'compute' asks each pod to state" in trouble.message
    assert said in trouble.message
    for way in ways:
        assert way in trouble.remedy


@pytest.mark.parametrize(
    ("pods", "words"),
    [
        ([], "its Job has made no pod"),
        (
            [pod("Pending")],
            "pod sluice-0123456789-3-x7k2p is Pending: no scheduler has taken it up",
        ),
        (
            [pod("Pending") | {"spec": {"nodeName": "n1"}}],
            "pod sluice-0123456789-3-x7k2p is Pending: on node n1, without containers",
        ),
        (
            [pod("Pending", driver(waiting={"reason": "ContainerCreating"}))],
            "pod sluice-0123456789-3-x7k2p is Pending: ContainerCreating",
        ),
        (
            [
                pod(
                    "Pending",
                    initContainerStatuses=[
                        driver(waiting={"reason": "CreateContainerConfigError"})
                    ],
                )
            ],
            "pod sluice-0123456789-3-x7k2p is Pending: CreateContainerConfigError",
        ),
        ([pod("Running", driver(running={}))], ""),
    ],
)
def test_a_pod_that_does_not_run_says_how_far_it_is(pods: list[Object], words: str) -> None:
    """The words explain the wait to users when no failure is known."""
    assert look(job(), *pods).words == words


def test_a_driver_that_runs_has_no_trouble() -> None:
    """Events about its start do not matter any more."""
    seen = look(job(), pod("Running", driver(running={})), events=(event("FailedMount", NO_PLAN),))
    assert seen.trouble is None


def test_a_long_message_is_cut_and_on_one_line() -> None:
    """A condition has no room for a page."""
    seen = look(job(), events=(event("FailedCreate", "no\n  room " * 1000),))
    assert seen.trouble is not None
    assert len(seen.trouble.message) == 1000
    assert "\n" not in seen.trouble.message
