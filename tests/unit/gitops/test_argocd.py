"""The health checks for Argo CD, over an object of every state.

UPDATE_GOLDEN=1 .venv/bin/pytest tests/unit/gitops    writes the golden files and the pages' tables
"""

import re
from pathlib import Path

import pytest
import yaml

import gengitops
from support.cases.golden import check
from support.gitops.argocd import STATUSES, health
from support.situations.situations import SITUATIONS, Situation

GOLDEN = Path(__file__).parent / "golden"
KINDS = sorted({situation.kind for situation in SITUATIONS})
AGREES = {
    "Current": {"Healthy"},
    "Failed": {"Degraded"},
    "InProgress": {"Progressing", "Suspended"},
    "Terminating": {"Progressing"},
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_state_has_the_recorded_health(kind: str) -> None:
    """Status and message of each state equal those in the golden file."""
    found = {one.name: health(one.body) for one in SITUATIONS if one.kind == kind}
    text = yaml.safe_dump(found, sort_keys=False, width=100)
    check(GOLDEN / f"argocd-{kind}.yaml", text)


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda one: f"{one.kind}-{one.name}")
def test_argo_cd_and_flux_are_told_the_same(situation: Situation) -> None:
    """The results agree, except for a run that was asked for: only Argo CD can see that."""
    found = health(situation.body)
    assert found["status"] in STATUSES
    assert found["message"] or situation.name == "unseen"
    expected = {"Progressing"} if situation.name == "asked-again" else AGREES[situation.kstatus]
    assert found["status"] in expected


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda one: f"{one.kind}-{one.name}")
def test_no_message_speaks_python(situation: Situation) -> None:
    """People read messages, so none contains `None`, a class's representation or a traceback."""
    for condition in situation.body.get("status", {}).get("conditions", []):
        assert not re.search(r"\bNone\b(?! of )|\b\w+\('|Traceback", condition["message"])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "status",
    [
        None,
        {"observedGeneration": 1},
        {"observedGeneration": 1, "conditions": []},
        {
            "observedGeneration": 1,
            "conditions": [{"type": "Ready", "status": "False", "message": "no"}],
        },
    ],
    ids=["none", "no-conditions", "empty", "only-unready"],
)
def test_a_status_that_says_nothing_is_not_healthy(kind: str, status: object) -> None:
    """A resource is Progressing until its status says that it is ready or has failed."""
    body = {"kind": kind, "metadata": {"name": "a", "generation": 1}}
    found = health(body if status is None else {**body, "status": status})
    assert found["status"] == "Progressing"


def test_a_long_request_does_not_stay_unheard() -> None:
    """An annotation beyond the status field's length does not count as a pending run."""
    done = next(one for one in SITUATIONS if one.name == "succeeded")
    annotations = {"sluice.dev/requestedAt": "x" * 513}
    body = {**done.body, "metadata": {**done.body["metadata"], "annotations": annotations}}
    assert health(body)["status"] == "Healthy"


def test_the_patch_has_not_drifted() -> None:
    """argocd-cm-patch.yaml equals the output of hack/gengitops.py, with a script for each kind."""
    assert gengitops.PATCH.read_text() == gengitops.patch()
    data = yaml.safe_load(gengitops.PATCH.read_text())["data"]
    prefix = "resource.customizations.health.sluice.dev_"
    assert set(data) == {prefix + kind for kind in KINDS}
    assert {key.removeprefix(prefix): text for key, text in data.items()} == {
        key.removeprefix("sluice.dev_"): text for key, text in gengitops.scripts().items()
    }
