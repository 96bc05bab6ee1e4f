from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.api.fields.common import StoreRef
from sluice.api.fields.running import LimitsSpec
from sluice.api.load import load
from sluice.errors import InvalidSpec
from support.cases.resources import COPY, REMOVED, STORE, changed, label, text


def test_a_good_file_is_read() -> None:
    """Copies keep the file's order, and defaults are set.

    A store is found by namespace and name.
    """
    other = changed(changed(COPY, "metadata.name", "b"), "metadata.namespace", "team")
    resources = load(text(COPY, STORE, None, changed(other, "spec.suspend", value=True)))
    first, second = resources.copies
    assert (first.metadata.name, first.metadata.namespace) == ("orders", "default")
    assert (second.metadata.name, second.metadata.namespace) == ("b", "team")
    assert (first.spec.suspend, second.spec.suspend) == (False, True)
    assert (first.spec.source.scope, first.spec.target.on_exists) == ("in", "Fail")
    assert first.spec.limits == LimitsSpec()
    store = resources.store(first, StoreRef(name="local"), field="spec.source.storeRef.name")
    assert store.spec.pravega is not None
    assert store.spec.pravega.controller_uri == "tcp://127.0.0.1:9090"


def test_a_store_with_credentials_names_a_secret() -> None:
    """The spec returns the name of the Secret with the login."""
    auth = {"basic": {"secretRef": {"name": "login"}}}
    resources = load(text(COPY, changed(STORE, "spec.pravega.auth", auth)))
    named = resources.stores["default", "local"].spec.secret
    assert named == "login"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("apiVersion", "sluice.dev/v1"),
        ("metadata", REMOVED),
        ("metadata.name", REMOVED),
        ("metadata.name", "Orders"),
        ("metadata.name", ""),
        ("metadata.name", "a" * 64),
        ("metadata.name", "a\n"),
        ("metadata.name", 7),
        ("metadata.namespace", "a_b"),
        ("spec", REMOVED),
        ("spec", "copy it"),
        ("spec.source", ["in/orders"]),
        ("spec.source.scope", REMOVED),
        ("spec.source.scope", ""),
        ("spec.source.scope", "a/b"),
        ("spec.source.stream", "a b"),
        ("spec.source.stream", "a_b"),
        ("spec.target.stream", "under_score"),
        ("spec.target.stream", "_RGreaders"),
        ("spec.target.scope", "under_scope"),
        ("spec.source.stream", "a" * 250),
        ("spec.source.stream", None),
        ("spec.source.storeRef", REMOVED),
        ("spec.source.storeRef", "local"),
        ("spec.source.storeRef.name", REMOVED),
        ("spec.source.storeRef.uid", "other"),
        ("spec.target", REMOVED),
        ("spec.target.stream", 12),
        ("spec.target.onExists", "Skip"),
        ("spec.target.sealWhenDone", "true"),
        ("spec.target.on_exists", "Fail"),
        ("spec.suspend", "perhaps"),
        ("spec.suspend", None),
        ("spec.limits", 5),
        ("spec.limits.bytesPerSecond", "fast"),
        ("spec.limits.bytesPerSecond", "-1"),
        ("spec.limits.bytesPerSecond", -1),
        ("spec.limits.bytesPerSecond", 1023),
        ("spec.limits.bytesPerSecond", 2048.5),
        ("spec.limits.bytesPerSecond", "1.5Gi"),
        ("spec.limits.bytesPerSecond", "2mi"),
        ("spec.limits.bytesPerSecond", True),
        ("spec.limits.inFlightBytes", "1M"),
        ("spec.limits.inFlightBytes", "2Gi"),
        ("spec.limits.inFlight", "64Mi"),
        ("spec.limits.inFlightBytes", "1.5"),
        ("spec.mode", "Forever"),
        ("spec.backoffLimit", -1),
        ("spec.backoffLimit", "6"),
        ("spec.activeDeadlineSeconds", 59),
        ("spec.ttlSecondsAfterFinished", -1),
        ("spec.runtime.profile", "Large"),
        ("spec.runtime.executors", 257),
        ("spec.runtime.image", "mine"),
        ("spec.runtime.driver.resources.cpu", "99m"),
        ("spec.runtime.driver.resources.cpu", 257),
        ("spec.runtime.driver.resources.cpu", 1.5),
        ("spec.runtime.driver.resources.cpu", True),
        ("spec.runtime.driver.resources.cpuLimit", 1),  # without cpu
        ("spec.runtime.driver.resources.cpuLimit", "50m"),
        ("spec.runtime.driver.resources.memory", "511Mi"),
        ("spec.runtime.executor.resources.memory", "767Mi"),
        ("spec.runtime.executor.resources.gpu", 1),
        ("specs", {}),
    ],
    ids=label,
)
def test_a_wrong_field_of_a_copy_is_named(path: str, value: object) -> None:
    """A missing, unknown or wrong field raises InvalidSpec with the field's path in YAML."""
    with pytest.raises(InvalidSpec) as caught:
        load(text(STORE, changed(COPY, path, value)))
    assert caught.value.field == path
    assert "StreamCopy in document 2" in caught.value.message


def test_all_that_is_wrong_is_said_at_once() -> None:
    """One error reports several wrong fields, each with its problem."""
    wrong = changed(changed(COPY, "spec.source.scope", ""), "spec.colour", "red")
    with pytest.raises(InvalidSpec) as caught:
        load(text(wrong))
    assert caught.value.field == "spec.source.scope"
    assert "; spec.colour: there is no such field" in caught.value.message


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ("a: [1, 2", "not YAML"),
        ("a: b: c", "not YAML"),
        ("when: 2026-13-45", "not YAML"),
        ("\0", "not YAML"),
        ("[" * 5000, "not YAML"),
        ("- 1", "document 1 is not a mapping"),
        ("just text", "document 1 is not a mapping"),
        ("", "no ScopeCopy and no StreamArchive"),
        ("---\n---\n", "there is no StreamCopy"),
        ("kind: StreamCopy", "there is no StreamCopy"),
        ("apiVersion: sluice.dev/v1alpha1\nkind: StreamMove", "unknown kind 'StreamMove'"),
        ("apiVersion: sluice.dev/v1alpha1", "unknown kind None"),
        ("apiVersion: sluice.dev/v1alpha1\nkind: [StreamCopy]", "unknown kind"),
    ],
    ids=lambda value: value[:20],
)
def test_a_file_that_is_no_resource_is_refused(broken: str, said: str) -> None:
    """A text without YAML, resource or copy raises InvalidSpec with a remedy."""
    with pytest.raises(InvalidSpec) as caught:
        load(broken)
    assert said in caught.value.message
    assert caught.value.remedy


@given(st.text(max_size=60))
def test_no_text_breaks_it(anything: str) -> None:
    """An arbitrary text raises InvalidSpec and no other error."""
    with pytest.raises(InvalidSpec):
        load(anything)


@pytest.mark.parametrize("twice", [COPY, STORE], ids=["copy", "store"])
def test_two_of_one_name_are_refused(twice: dict[str, Any]) -> None:
    """Two resources with the same kind, namespace and name raise InvalidSpec at metadata.name."""
    with pytest.raises(InvalidSpec, match="there are two") as caught:
        load(text(COPY, STORE, twice))
    assert caught.value.field == "metadata.name"


def test_equal_names_in_two_namespaces_are_two_resources() -> None:
    """The same name in another namespace is accepted."""
    resources = load(text(COPY, changed(COPY, "metadata.namespace", "other")))
    assert len(resources.copies) == 2


def test_other_groups_are_passed_over() -> None:
    """The file may also contain resources of other API groups, and they are skipped."""
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "data": {}}
    similar = {"apiVersion": "sluice.dev.example/v1", "kind": "StreamCopy"}
    resources = load(text(config_map, COPY, similar, STORE))
    assert [found.metadata.name for found in resources.copies] == ["orders"]


def test_labels_and_a_status_are_passed_over() -> None:
    """A resource with the labels and status of a live object has the same spec."""
    live = changed(changed(COPY, "status", {"phase": 1}), "metadata.labels", {"a": "b"})
    assert load(text(live)).copies[0].spec == load(text(COPY)).copies[0].spec


def test_a_copy_may_name_a_store_of_another_namespace_in_the_file() -> None:
    """The reference's namespace decides, although the copy's namespace has a store of that name."""
    shared = changed(STORE, "metadata.namespace", "platform")
    copy = changed(COPY, "spec.target.storeRef.namespace", "platform")
    resources = load(text(copy, shared, STORE))
    (found,) = resources.copies
    assert found.spec.target.store == "platform/local"
    store = resources.store(found, found.spec.target.ref, field="spec.target.storeRef.name")
    assert store.metadata.namespace == "platform"


@pytest.mark.parametrize(
    ("namespace", "name"), [("default", "remote"), ("other", "local")], ids=["name", "namespace"]
)
def test_a_store_that_is_not_in_the_file_is_named(namespace: str, name: str) -> None:
    """InvalidSpec names the reference if its store is missing or in another namespace."""
    moved = changed(COPY, "metadata.namespace", namespace)
    resources = load(text(moved, STORE))
    with pytest.raises(InvalidSpec, match=name) as caught:
        resources.store(resources.copies[0], StoreRef(name=name), field="spec.target.storeRef.name")
    assert caught.value.field == "spec.target.storeRef.name"


@pytest.mark.parametrize(
    ("written", "count"),
    [
        (2048, 2048),
        ("2048", 2048),
        ("500k", 500_000),
        ("3M", 3_000_000),
        ("3G", 3_000_000_000),
        ("1T", 1_000_000_000_000),
        ("4Ki", 4096),
        ("64Mi", 67_108_864),
        ("2Gi", 2_147_483_648),
        ("1Ti", 1_099_511_627_776),
    ],
)
def test_quantities_are_read_as_kubernetes_writes_them(written: object, count: int) -> None:
    """A quantity is a number of bytes, plain or with a decimal or binary suffix."""
    spec = load(text(changed(COPY, "spec.limits.bytesPerSecond", written))).copies[0].spec
    assert spec.limits.bytes_per_second == count


@pytest.mark.parametrize(
    ("written", "count"),
    [
        (2, 2000),
        (2.0, 2000),
        ("2", 2000),
        ("1.5", 1500),
        ("0.25", 250),
        ("100m", 100),
        ("256", 256_000),
    ],
)
def test_processors_are_read_as_kubernetes_writes_them(written: object, count: int) -> None:
    """A number of processors, or of thousandths with the suffix m, becomes thousandths."""
    spec = load(text(changed(COPY, "spec.runtime.driver.resources.cpu", written))).copies[0].spec
    assert spec.runtime.driver.resources.cpu == count


def test_a_wrong_quantity_says_what_to_write() -> None:
    """The message names bounds and suffixes, whether the form or the size is wrong."""
    for wrong in ("fast", "2Gi"):
        with pytest.raises(InvalidSpec, match="write 1Mi to 1Gi, in bytes or with a suffix"):
            load(text(changed(COPY, "spec.limits.inFlightBytes", wrong)))


def test_a_stream_is_not_copied_onto_itself() -> None:
    """The target may equal the source only in another store."""
    with pytest.raises(InvalidSpec, match="onto itself") as caught:
        load(text(changed(COPY, "spec.target.scope", "in")))
    assert caught.value.field == "spec.target"
    elsewhere = changed(COPY, "spec.target.storeRef.name", "remote")
    assert load(text(changed(elsewhere, "spec.target.scope", "in"))).copies


def test_executors_of_no_number_are_refused() -> None:
    """A description of executors is refused with `executors: 0`, and accepted otherwise."""
    runtime = {"executors": 0, "executor": {"resources": {"memory": "2Gi"}}}
    with pytest.raises(InvalidSpec, match="remove executor") as caught:
        load(text(changed(COPY, "spec.runtime", runtime)))
    assert caught.value.field == "spec.runtime.executor"
    for executors in (None, 1):
        wanted = changed(COPY, "spec.runtime", {**runtime, "executors": executors})
        spec = load(text(wanted)).copies[0].spec
        assert spec.runtime.executor is not None
        assert spec.runtime.executor.resources.memory == 1 << 31


def test_identity_ignores_what_may_change() -> None:
    """Suspension, limits, retries and pods do not change the identity; the target does."""
    plain = load(text(COPY)).copies[0].spec.identity()
    suspended = changed(COPY, "spec.suspend", value=True)
    limited = changed(COPY, "spec.limits.inFlightBytes", "2Mi")
    for path, value in (("backoffLimit", 1), ("runtime", {"executors": 2})):
        assert load(text(changed(COPY, f"spec.{path}", value))).copies[0].spec.identity() == plain
    assert load(text(suspended)).copies[0].spec.identity() == plain
    assert load(text(limited)).copies[0].spec.identity() == plain
    assert plain == {
        "source": {"storeRef": {"name": "local"}, "scope": "in", "stream": "orders"},
        "target": {"storeRef": {"name": "local"}, "scope": "out", "stream": "orders"},
    }
    renamed = changed(COPY, "spec.target.stream", "orders2")
    assert load(text(renamed)).copies[0].spec.identity() != plain


def test_resources_cannot_be_changed() -> None:
    """Assigning to a field of a spec that was read raises an error."""
    spec = load(text(COPY)).copies[0].spec
    with pytest.raises(ValueError, match="frozen"):
        spec.suspend = True  # type: ignore[misc]


def test_a_copy_has_one_source_or_several() -> None:
    """Neither `source` nor `sources`, or both, is refused.

    Errors name a source by its place in the list.
    """
    source = COPY["spec"]["source"]
    several = changed(changed(COPY, "spec.source", REMOVED), "spec.sources", [source, source])
    (copy,) = load(text(STORE, several)).copies
    assert [field for field, _ in copy.spec.origins] == ["spec.sources[0]", "spec.sources[1]"]
    for wrong in (changed(COPY, "spec.source", REMOVED), changed(COPY, "spec.sources", [source])):
        with pytest.raises(InvalidSpec, match="exactly one origin of the bytes is needed"):
            load(text(STORE, wrong))
    bad = changed(several, "spec.sources", [source, source | {"stream": "a b"}])
    with pytest.raises(InvalidSpec) as caught:
        load(text(STORE, bad))
    assert caught.value.field == "spec.sources[1].stream"


def test_a_target_is_none_of_the_sources() -> None:
    """A copy of several sources is refused if one of them is the target."""
    source, target = COPY["spec"]["source"], COPY["spec"]["target"]
    onto = {name: target[name] for name in ("storeRef", "scope", "stream")}
    several = changed(changed(COPY, "spec.source", REMOVED), "spec.sources", [source, onto])
    with pytest.raises(InvalidSpec, match="copied onto itself"):
        load(text(STORE, several))
