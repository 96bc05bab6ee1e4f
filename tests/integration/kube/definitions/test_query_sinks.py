"""The API server's refusals of sinks. The command line refuses the same, but for changes."""

from typing import Any

import pytest
from pydantic import ValidationError

from sluice.api.kinds.streamquery import StreamQuery
from support.cases.resources import QUERY, changed
from support.kube.apply import Applier

KEPT = {"storeRef": {"name": "local"}, "scope": "in", "stream": "counts"}
SHOWN = {**KEPT, "stream": "shown"}


@pytest.mark.parametrize(
    ("sink", "said"),
    [
        ({}, "exactly one kind of sink is needed: stream, live"),
        ({"stream": KEPT, "live": SHOWN}, "exactly one kind of sink is needed: stream, live"),
        ({"live": {**SHOWN, "keepSeconds": 59}}, "greater than or equal to 60"),
        ({"live": {**SHOWN, "stream": "a/b"}}, "digits, . and - only"),
        ({"stream": {**KEPT, "keepSeconds": 60}}, "unknown field"),
    ],
    ids=["none", "both", "too short", "name", "kept"],
)
def test_a_wrong_sink_is_refused(applier: Applier, sink: dict[str, Any], said: str) -> None:
    """The refusal names the field and what it may be."""
    wrong = changed(QUERY, "spec.sinks", [sink])
    assert said in applier.refusal_of_new(wrong)
    with pytest.raises(ValidationError):
        StreamQuery.model_validate(wrong)


@pytest.mark.parametrize(
    "sinks",
    [
        [{"stream": KEPT}],
        [{"stream": KEPT}, {"live": {**SHOWN, "stream": "other"}}],
        [{"stream": KEPT}, {"live": {**SHOWN, "keepSeconds": 120}}],
        [{"stream": KEPT}, {"live": SHOWN}, {"stream": {**KEPT, "stream": "more"}}],
    ],
    ids=["removed", "another", "longer", "beside"],
)
def test_sinks_of_which_one_is_live_stay(applier: Applier, sinks: list[dict[str, Any]]) -> None:
    """The live one of before would be left behind. Other fields may be changed."""
    good = changed(QUERY, "spec.sinks", [{"stream": KEPT}, {"live": SHOWN}])
    applier.apply(good)
    refusal = applier.refusal(changed(QUERY, "spec.sinks", sinks))
    assert "spec.sinks" in refusal
    assert "delete the query, and apply it again" in refusal
    applier.apply(changed(good, "spec.trigger", {"intervalSeconds": 5}))
    applier.apply(good)


def test_a_live_sink_cannot_be_added(applier: Applier) -> None:
    """Sinks without a live one may be changed: that is another query."""
    applier.apply(changed(QUERY, "metadata.name", "kept"))
    more = changed(QUERY, "metadata.name", "kept")
    refusal = applier.refusal(changed(more, "spec.sinks", [{"stream": KEPT}, {"live": SHOWN}]))
    assert "delete the query, and apply it again" in refusal
    applier.apply(changed(more, "spec.sinks", [{"stream": {**KEPT, "stream": "other"}}]))


def test_live_sinks_come_last(applier: Applier) -> None:
    """The ledger lies beside the first sink, and would go with a live one."""
    wrong = changed(QUERY, "spec.sinks", [{"live": SHOWN}, {"stream": KEPT}])
    assert "live sinks come behind the others" in applier.refusal_of_new(wrong)
    with pytest.raises(ValidationError):
        StreamQuery.model_validate(wrong)
    only = [{"live": SHOWN}, {"live": {**SHOWN, "stream": "other"}}]
    assert not applier.refusal_of_new(changed(QUERY, "spec.sinks", only))
