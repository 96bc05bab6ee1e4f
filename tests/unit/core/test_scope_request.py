from typing import Any

import pytest

from sluice.api.scopecopy import ScopeCopy
from sluice.core import identity
from sluice.core.model import StreamName
from sluice.core.planner import SourceRequest
from sluice.core.request import scope_request
from sluice.core.scope_request import Rename, ScopeRequest, Selector


def scope_copy(**spec: Any) -> ScopeCopy:
    """A ScopeCopy with these fields beside source and target."""
    return ScopeCopy.model_validate(
        {
            "apiVersion": "sluice.dev/v1alpha1",
            "kind": "ScopeCopy",
            "metadata": {"name": "all", "namespace": "n"},
            "spec": {
                "source": {"storeRef": {"name": "here"}, "scope": "in"},
                "target": {"storeRef": {"name": "there"}, "scope": "out"},
                **spec,
            },
        }
    )


def test_a_scope_copy_asks_for_all_that_users_made() -> None:
    """As its defaults say."""
    copy = scope_copy()
    assert scope_request(copy, cluster="c") == ScopeRequest(
        scope_id=identity.copy_id(
            cluster="c", namespace="n", name="all", identity=copy.spec.identity()
        ),
        source="in",
        target="out",
    )


def test_a_scope_copy_asks_for_what_its_spec_says() -> None:
    """Every field that shapes a plan is taken over."""
    request = scope_request(
        scope_copy(
            target={
                "storeRef": {"name": "there"},
                "scope": "out",
                "scopePolicy": "CreateIfAbsent",
            },
            streams={
                "include": [{"type": "Prefix", "value": "a"}],
                "exclude": [{"type": "Tag", "value": "x=y"}],
                "includeEphemeral": True,
            },
            rename=[{"fromPrefix": "a-", "toPrefix": "b-"}],
            onExists="Skip",
            onTruncation="Record",
            sourceOnComplete="Delete",
        ),
        cluster="c",
        part_bytes=1 << 30,
        tasks=4,
        verify=False,
    )
    assert request.make_scope
    assert request.include == (Selector(type="Prefix", value="a"),)
    assert request.exclude == (Selector(type="Tag", value="x=y"),)
    assert request.ephemeral
    assert request.rename == (Rename(from_prefix="a-", to_prefix="b-"),)
    assert (request.on_exists, request.on_truncation) == ("Skip", "Record")
    assert (request.move, request.verify) == (True, False)
    assert (request.part_bytes, request.tasks) == (1 << 30, 4)


@pytest.mark.parametrize("on_exists", ["Fail", "Skip", "Append"])
def test_each_stream_is_asked_for_as_a_copy_of_its_own(on_exists: str) -> None:
    """With an identity that follows from the whole's and its name."""
    request = ScopeRequest.model_validate(
        {"scope_id": "5c" * 16, "source": "in", "target": "out", "on_exists": on_exists}
    )
    one = request.of("a", "b")
    assert one.copy_id == identity.stream_copy_id("5c" * 16, "a")
    assert one.sources == (SourceRequest(stream=StreamName(scope="in", stream="a")),)
    assert one.target == StreamName(scope="out", stream="b")
    assert one.append == (on_exists == "Append")
