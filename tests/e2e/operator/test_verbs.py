"""The command line's verbs on resources of a cluster, as a user types them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest

if TYPE_CHECKING:
    from e2e.operator.conftest import Source
    from localcluster import Cluster
    from localstore import ForeignClient
    from support.tenants.tenant import Tenant

pytestmark = pytest.mark.exhaustive

PLUGIN = Path(sys.executable).with_name("kubectl-sluice")


class Command(Protocol):
    """A run of the command line in the tenant's namespace."""

    def __call__(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run `kubectl sluice` with these words to its end."""
        ...


@pytest.fixture
def sluice_command(kube: Cluster, tenant: Tenant) -> Command:
    """Return a function that runs the plugin as a user of the tenant's namespace."""

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [PLUGIN, *words, "--namespace", tenant.namespace]
        environment = os.environ | {"KUBECONFIG": str(kube.kubeconfig)}
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=120, check=False
        )

    return run


def test_a_copy_is_suspended_resumed_and_waited_for(
    tenant: Tenant, small: Source, scope: str, sluice_command: Command
) -> None:
    """Each verb reports its change, and the status follows. A wait ends with the condition."""
    tenant.apply(tenant.copy_resource("asked", small.name, f"{scope}/asked", suspend=True))
    assert sluice_command("wait", "asked", "--for", "Suspended").returncode == 0
    early = sluice_command("wait", "scopy/asked", "--timeout", "0")
    assert (early.returncode, "the time is over" in early.stderr) == (124, True)
    resumed = sluice_command("resume", "streamcopy/asked")
    assert (resumed.returncode, resumed.stderr) == (0, "streamcopy/asked is resumed\n")
    done = sluice_command("wait", "asked", "--timeout", "60", "-o", "json")
    (told,) = json.loads(done.stdout)
    assert (done.returncode, told["met"], told["reason"]) == (0, True, "Copied")
    again = sluice_command("suspend", "asked", "--quiet")
    assert (again.returncode, again.stderr) == (0, "")
    assert (tenant.get("scopy", "asked") or {})["spec"]["suspend"] is True


def test_a_failed_copy_ends_the_wait_and_is_tried_again(
    tenant: Tenant, scope: str, java: ForeignClient, sluice_command: Command
) -> None:
    """The exit code is that of wrong input. Once the source exists, a retry copies it."""
    tenant.apply(tenant.copy_resource("early", f"{scope}/late", f"{scope}/early"))
    failed = sluice_command("wait", "early", "--timeout", "60")
    assert failed.returncode == 2
    assert "SourceNotFound" in failed.stderr
    java.create(scope, "late")
    java.write(scope, "late", events=100)
    assert sluice_command("retry", "early").returncode == 0
    # The earlier failure is older than the request, so it does not end this wait.
    assert sluice_command("wait", "early", "--timeout", "60").returncode == 0
    assert tenant.status("early")["verification"]["events"] == 100


def test_a_name_that_is_wrong_or_means_two_is_refused(
    tenant: Tenant, small: Source, scope: str, sluice_command: Command
) -> None:
    """With a wrong or ambiguous name, no resource is changed, not even correctly named ones."""
    tenant.apply(
        tenant.copy_resource("store", small.name, f"{scope}/one", suspend=True),
        tenant.copy_resource("mine", small.name, f"{scope}/mine", suspend=True),
    )
    missing = sluice_command("resume", "mine", "none")
    assert (missing.returncode, "no resource 'none'" in missing.stderr) == (2, True)
    assert (tenant.get("scopy", "mine") or {})["spec"]["suspend"] is True
    both = sluice_command("wait", "store")
    assert both.returncode == 2
    assert "streamstore/store or streamcopy/store" in both.stderr
    unknown = sluice_command("resume", "pod/mine")
    assert (unknown.returncode, "streamcopy" in unknown.stderr) == (2, True)


def test_a_copy_is_followed_to_its_end(
    tenant: Tenant, small: Source, scope: str, sluice_command: Command
) -> None:
    """A copy can be followed by its log, readable or raw, and by its progress."""
    tenant.apply(tenant.copy_resource("told", small.name, f"{scope}/told"))
    log = sluice_command("logs", "--follow", "told")
    assert log.returncode == 0
    assert "stream done" in log.stdout
    assert log.stdout.splitlines()[-1].endswith("driver ended")
    raw = sluice_command("logs", "scopy/told", "--raw", "--quiet")
    events = [json.loads(line)["event"] for line in raw.stdout.splitlines()]
    assert (events[0], events[-1], raw.stderr) == ("driver started", "driver ended", "")
    watched = sluice_command("watch", "scopy/told")
    assert (watched.returncode, watched.stderr) == (0, "")
    assert watched.stdout.startswith("streamcopy/told  Copied  100%")
    page = sluice_command("describe", "told").stdout
    assert "pod/sluice-" in page
    assert "Succeeded" in page.partition("Attempts")[2]
    assert page.endswith("Next step\n  Nothing.\n")
