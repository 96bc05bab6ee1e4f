"""The library kstatus itself, on an object of every state."""

import json
import subprocess

import pytest

from support.gitops.kstatus import COMPILE_SECONDS, kstatus, program
from support.situations.situations import SITUATIONS

pytestmark = pytest.mark.timeout(COMPILE_SECONDS)


def test_every_state_is_taken_for_what_it_is() -> None:
    """The library kstatus computes the expected status for each recorded situation."""
    expected = {f"{one.kind}/{one.name}": one.kstatus for one in SITUATIONS}
    assert len(expected) == len(SITUATIONS)
    assert kstatus([one.body for one in SITUATIONS]) == expected


def test_what_kubectl_prints_is_read() -> None:
    """The program reads a list as `kubectl get -o yaml` writes it."""
    listed = "kind: List\nitems:\n- {kind: StreamCopy, metadata: {name: a, generation: 2}}\n"
    done = subprocess.run([program()], input=listed, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {
        "kind": "StreamCopy",
        "name": "a",
        "status": "Current",  # the verdict on a resource without the schema's default
        "message": "Resource is current",
    }


def test_what_is_no_list_is_refused() -> None:
    """Input that is no list ends with an error, not with an empty answer."""
    done = subprocess.run([program()], input="5", capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "neither a list" in done.stderr
