"""The operations that a StreamStore's access allows."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest

from sluice.api.fields.common import StoreRef
from sluice.api.kinds.ephemeralstream import EphemeralStreamSpec
from sluice.api.kinds.streamstore import Access, Operation
from sluice.core.values.model import StoreAddress
from sluice.core.values.trouble import Trouble
from sluice.core.workloads import access
from sluice.errors import AccessDenied, LoginNotShared, StoreNotFound, StoreNotShared


def _access(**given: Any) -> Access:
    return Access.model_validate(given)


@pytest.mark.parametrize(
    ("given", "scope"),
    [
        ({}, "any"),
        ({"scopes": ["team-a"]}, "team-a"),
        ({"scopes": ["other", "team-*"]}, "team-a"),
        ({"scopes": ["*"]}, "any"),
        ({"operations": ["Create", "Delete"]}, "any"),
    ],
)
def test_what_is_listed_may_be_done(given: dict[str, Any], scope: str) -> None:
    """Scopes are listed by name or prefix, operations by name. Without a list, all are allowed."""
    access.check(_access(**given), store="s", scope=scope, operations={"Create"})


def test_without_access_everything_may_be_done() -> None:
    """A StreamStore without `access` allows all that its login may do in the store."""
    access.check(None, store="s", scope="any", operations={"Delete"})


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"scopes": ["team-a"]}, "spec.target.scope"),
        ({"scopes": ["team-b*"]}, "spec.target.scope"),
        ({"operations": ["Read"]}, "spec.target.storeRef.name"),
    ],
)
def test_what_is_not_listed_is_denied(given: dict[str, Any], field: str) -> None:
    """The error names the field of the resource that would have to change."""
    with pytest.raises(AccessDenied) as caught:
        access.check(
            _access(**given),
            store="s",
            scope="team-aa",
            operations={"Create"},
            field="spec.target",
        )
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("given", "labels", "admitted"),
    [
        ({}, {"a": "b"}, False),
        ({"namespaces": "Same"}, {}, False),
        ({"namespaces": "Selector", "selector": {"matchLabels": {"a": "b"}}}, {"a": "b"}, True),
        ({"namespaces": "Selector", "selector": {"matchLabels": {"a": "b"}}}, {"a": "c"}, False),
        ({"namespaces": "Selector", "selector": {"matchLabels": {"a": "b"}}}, None, False),
    ],
)
def test_other_namespaces_are_admitted_by_label(
    given: dict[str, Any], labels: dict[str, str] | None, *, admitted: bool
) -> None:
    """A namespace is admitted only by a selector, and only if it exists and agrees."""
    consent = {f"{access.CONSENT}here": "true"}
    agreed = None if labels is None else labels | consent
    try:
        access.check_namespace(
            _access(**given), store="s", here="here", namespace="n", labels=agreed
        )
    except AccessDenied:
        assert not admitted
    else:
        assert admitted


@pytest.mark.parametrize(
    "labels",
    [
        None,
        {},
        {"a": "b"},
        {"a": "b", f"{access.CONSENT}here": "false"},
        {"a": "b", f"{access.CONSENT}elsewhere": "true"},
        {"a": "b", "here": "true"},
    ],
)
def test_a_namespace_that_does_not_agree_is_not_told_from_one_that_is_not_there(
    labels: dict[str, str] | None,
) -> None:
    """The message is the same, whatever the StreamStore says, which may be the asker's own."""
    given = {"namespaces": "Selector", "selector": {"matchLabels": {"a": "b"}}}
    with pytest.raises(AccessDenied) as caught:
        access.check_namespace(
            _access(**given), store="s", here="here", namespace="n", labels=labels
        )
    assert str(caught.value.message) == (
        "nothing is told of workloads of namespace 'n': it does not agree"
    )
    assert caught.value.remedy == (
        "Its owner may agree: kubectl label namespace n observed-by.sluice.dev/here=true"
    )


def _entry(*names: str, **limits: Any) -> dict[str, Any]:
    return {"selector": {"matchLabels": dict.fromkeys(names, "yes")}, **limits}


@pytest.mark.parametrize(
    ("entries", "labels", "count"),
    [
        ([], {"a": "yes"}, 0),
        ([_entry("a")], {"a": "yes", "b": "no"}, 1),
        ([_entry("a")], {"a": "no"}, 0),
        ([_entry("a", "b")], {"a": "yes"}, 0),
        ([_entry("a"), _entry("b"), _entry("c")], {"a": "yes", "c": "yes"}, 2),
        ([_entry("a")], {}, 0),
        ([_entry("a")], None, 0),
    ],
)
def test_a_grant_names_namespaces_by_all_of_its_labels(
    entries: list[dict[str, Any]], labels: dict[str, str] | None, count: int
) -> None:
    """A namespace without these labels, or that does not exist, has no grant."""
    assert len(access.grants(_access(sharedWith=entries), labels)) == count
    assert access.grants(None, labels) == ()


@pytest.mark.parametrize(
    ("given", "entries", "error"),
    [
        ({}, [_entry("a")], None),
        ({}, [_entry("a", scopes=["team-*"], operations=["Create"])], None),
        ({}, [_entry("a", scopes=["other"]), _entry("a", scopes=["team-a"])], None),
        ({}, [], StoreNotShared),
        ({}, [_entry("a", scopes=["other"])], AccessDenied),
        ({}, [_entry("a", operations=["Read"])], AccessDenied),
        ({"scopes": ["other"]}, [_entry("a", scopes=["team-a"])], AccessDenied),
        ({"operations": ["Read"]}, [_entry("a", operations=["Create"])], AccessDenied),
        (
            {},
            [_entry("a", scopes=["team-a"], operations=["Read"]), _entry("a", scopes=["other"])],
            AccessDenied,
        ),
    ],
)
def test_a_shared_store_allows_what_itself_and_one_grant_allow(
    given: dict[str, Any], entries: list[dict[str, Any]], error: type[Exception] | None
) -> None:
    """A grant gives no more than the store allows, and two grants do not combine."""
    store = _access(sharedWith=entries, **given)
    given_to = access.grants(store, {"a": "yes"})
    with nullcontext() if error is None else pytest.raises(error):
        access.check(store, store="p/s", scope="team-a", operations={"Create"}, grants=given_to)


def test_a_store_of_another_namespace_that_is_not_there_is_one_that_does_not_admit() -> None:
    """Both errors read the same.

    For a store of its own namespace, a resource learns that it is missing.
    """
    far = StoreRef(name="s", namespace="p")
    gone = access.not_found(far, namespace="team", field="spec.storeRef.name")
    denied = access.not_shared("p/s", field="spec.storeRef.name")
    assert str(Trouble.of(gone)) == str(Trouble.of(denied))
    assert isinstance(access.not_found(far, namespace="p", field=""), StoreNotFound)
    assert isinstance(access.not_found(StoreRef(name="s"), namespace="p", field=""), StoreNotFound)


@pytest.mark.parametrize(
    ("address", "words"),
    [
        (StoreAddress(uri="tcp://h:1"), None),
        (StoreAddress(backend="s3", uri="s3://b"), None),
        (StoreAddress(uri="tcp://h:1", secret="login"), "its Secret$"),  # noqa: S106 - a name
        (
            StoreAddress(backend="s3", uri="s3://b", secret="k", ca="_c/ca"),  # noqa: S106 - a name
            "its Secret and its bundle of certificates$",
        ),
        (StoreAddress(uri="tls://h:1", ca="_c/ca"), "its bundle of certificates$"),
        (StoreAddress(uri="tls://h:1", client_certificate="c"), "its client certificate$"),
        (StoreAddress(uri="tls://h:1"), None),
        (StoreAddress(backend="volume", uri="volume://claim/a"), "its claim$"),
    ],
)
def test_a_driver_mounts_nothing_of_another_namespace(
    address: StoreAddress, words: str | None
) -> None:
    """The error lists the kinds of objects that the driver would have to mount, without names."""
    with nullcontext() if words is None else pytest.raises(LoginNotShared, match=words):
        access.check_mounts(address, store="p/s", field="spec.source.storeRef.name")


@pytest.mark.parametrize(
    ("given", "needed"),
    [
        ({"stream": "s"}, {"Create", "Delete"}),
        ({"streamPrefix": "app-"}, {"Delete"}),
        ({"streamPrefix": "app-", "scopePolicy": "CreateIfAbsent"}, {"Create", "Delete"}),
        ({"streamPrefix": "app-", "onRelease": "Retain"}, set()),
        ({"stream": "s", "adopt": "IfUnowned", "onRelease": "Retain"}, {"Create", "Append"}),
    ],
)
def test_whoever_may_make_a_scope_needs_to_be_allowed_to(
    given: dict[str, Any], needed: set[Operation]
) -> None:
    """An EphemeralStream with a prefix needs Create if it may make its scope."""
    body = {"storeRef": {"name": "s"}, "scope": "in", "tracking": "Observe", **given}
    spec = EphemeralStreamSpec.model_validate(body)
    assert access.needs(spec) == needed
    if "Create" in needed:
        with pytest.raises(AccessDenied, match="does not allow to Create"):
            access.check(
                _access(operations=["Append", "Delete"]),
                store="s",
                scope="in",
                operations=access.needs(spec),
            )
