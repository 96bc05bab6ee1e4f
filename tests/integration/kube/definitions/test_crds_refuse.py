"""The API server's refusals and their messages. The command line must refuse the same."""

from typing import Any

import pytest
from pydantic import ValidationError

from sluice.api.kinds.ephemeralstream import EphemeralStream
from sluice.api.load import load
from sluice.errors import InvalidSpec
from support.cases import wrong_archives
from support.cases.resources import ARCHIVE, COPY, EPHEMERAL, REMOVED, STORE, changed, label, text
from support.cases.wrong_ephemerals import CHANGED, GOOD, WRONG, ephemeral
from support.cases.wrong_ephemerals import UNKNOWN as LATER_EPHEMERALS
from support.kube.apply import Applier
from support.search import few

LABEL = "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"
BYTES_REMEDY = "write 1Ki to 1Ti, in bytes or with a suffix (500k, 64Mi, 2Gi)"
IN_FLIGHT_REMEDY = "write 1Mi to 1Gi, in bytes or with a suffix (500k, 64Mi, 2Gi)"
CPU_REMEDY = 'write 100m to 256, in processors or thousandths of one (2, "1.5", 500m)'
DRIVER_REMEDY = "write 512Mi to 1Ti, in bytes or with a suffix (500k, 64Mi, 2Gi)"
EXECUTOR_REMEDY = "write 768Mi to 1Ti, in bytes or with a suffix (500k, 64Mi, 2Gi)"
LIMIT_REMEDY = "cpuLimit goes with cpu, and is at least as much: give both"
PORT_REMEDY = "the address ends in a port from 1 to 65535"
ADDRESS_REMEDY = "the address of a controller is tcp://host:port, or with TLS tls://host:port"
TLS_REMEDY = "tls needs an address with TLS: write controllerURI as tls://host:port, or remove tls"
NAME_REMEDY = "the name of a server is that in its certificate, without scheme, port and *"
CUT_REMEDY = "streamCut goes with at: StreamCut, which needs it"
OFFSETS_REMEDY = "offsets go with at: Offsets, which needs them"
UNKNOWN = "unknown field"

HOOK = {"cronJobRef": {"name": "quiesce"}}
FIRST = {"segmentID": 0, "offset": 10}
BEFORE = {"segmentID": 0, "offset": -1}

Row = tuple[str, object, str]
"""A field's path, a wrong value, and the words of the refusal besides the path."""

COPIES: list[Row] = [
    ("metadata.name", "a" * 64, "a name has at most 63 characters"),
    ("metadata.name", "a.b", "no dots"),
    ("metadata.name", "Orders", "lower case"),
    ("spec", REMOVED, "Required value"),
    ("spec", "copy it", "must be of type object"),
    ("spec", {"target": COPY["spec"]["target"]}, "exactly one origin of the bytes is needed"),
    ("spec.source", ["in/orders"], "must be of type object"),
    ("spec.source.storeRef", REMOVED, "Required value"),
    ("spec.source.storeRef", "local", "must be of type object"),
    ("spec.source.storeRef.name", REMOVED, "Required value"),
    ("spec.source.storeRef.name", "Local", LABEL),
    ("spec.source.storeRef.name", "a" * 64, "Too long"),
    ("spec.source.scope", REMOVED, "Required value"),
    ("spec.source.scope", "", "at least 1 chars"),
    ("spec.source.scope", "a/b", "digits, . and - only"),
    ("spec.source.stream", "a_b", "digits, . and - only"),
    ("spec.source.stream", "a" * 250, "Too long"),
    ("spec.source.stream", "a\n", "digits, . and - only"),
    ("spec.source.ranges", "all", "must be of type array"),
    ("spec.source.ranges", [{}] * 17, "must have at most 16 items"),
    ("spec.source.ranges", [{"from": {"at": "Tail"}}], 'supported values: "Head"'),
    ("spec.source.ranges", [{"from": {"at": "StreamCut"}}], CUT_REMEDY),
    ("spec.source.ranges", [{"to": {"at": "Tail", "streamCut": "a"}}], CUT_REMEDY),
    ("spec.source.ranges", [{"to": {"at": "Offsets"}}], OFFSETS_REMEDY),
    ("spec.source.ranges", [{"to": {"at": "Tail", "offsets": [FIRST]}}], OFFSETS_REMEDY),
    ("spec.source.ranges", [{"to": {"at": "Offsets", "offsets": [FIRST] * 2}}], "Duplicate value"),
    ("spec.source.ranges", [{"to": {"at": "Offsets", "offsets": [BEFORE]}}], "greater than or"),
    ("spec.target", REMOVED, "Required value"),
    ("spec.target.scope", 12, "must be of type string"),
    ("spec.target.stream", "a b", "digits, . and - only"),
    ("spec.target.stream", "under_score", "digits, . and - only"),
    ("spec.target.stream", "_RGreaders", "digits, . and - only"),
    ("spec.target.scope", "under_scope", "digits, . and - only"),
    ("spec.target.onExists", "Skip", 'supported values: "Fail"'),
    ("spec.target.sealWhenDone", "yes", "must be of type boolean"),
    ("spec.sourceOnComplete", "Drop", 'supported values: "Retain", "Delete"'),
    ("spec.onTruncation", "Skip", 'supported values: "Fail", "Record"'),
    ("spec.hooks", ["quiesce"], "must be of type object"),
    ("spec.hooks.before", {}, "Required value"),
    ("spec.hooks.before", {"cronJobRef": {"name": "Q"}}, "should match"),
    ("spec.hooks.before", {"cronJobRef": {"name": "a" * 53}}, "Too long"),
    ("spec.hooks.after", {**HOOK, "onFailure": "Retry"}, 'supported values: "Fail", "Continue"'),
    ("spec.hooks.after", {**HOOK, "timeoutSeconds": 0}, "greater than or equal to 1"),
    ("spec.hooks.after", {**HOOK, "backoffLimit": 21}, "less than or equal to 20"),
    ("spec.suspend", "yes", "must be of type boolean"),
    ("spec.limits", 5, "must be of type object"),
    ("spec.limits.bytesPerSecond", 1023, BYTES_REMEDY),
    ("spec.limits.bytesPerSecond", "1k", BYTES_REMEDY),
    ("spec.limits.bytesPerSecond", "2Ti", BYTES_REMEDY),
    ("spec.limits.bytesPerSecond", "999999999999999Ti", BYTES_REMEDY),
    ("spec.limits.bytesPerSecond", "1.5Gi", BYTES_REMEDY),
    ("spec.limits.bytesPerSecond", "2mi", BYTES_REMEDY),
    ("spec.limits.bytesPerSecond", "fast", BYTES_REMEDY),
    ("spec.limits.bytesPerSecond", 2048.5, "must be of type integer,string"),
    ("spec.limits.bytesPerSecond", True, "must be of type integer,string"),
    ("spec.limits.inFlightBytes", "1M", IN_FLIGHT_REMEDY),
    ("spec.limits.inFlightBytes", (1 << 30) + 1, IN_FLIGHT_REMEDY),
    ("spec.backoffLimit", -1, "greater than or equal to 0"),
    ("spec.backoffLimit", 101, "less than or equal to 100"),
    ("spec.backoffLimit", "6", "must be of type integer"),
    ("spec.ttlSecondsAfterFinished", -1, "greater than or equal to 0"),
    ("spec.activeDeadlineSeconds", 59, "greater than or equal to 60"),
    ("spec.activeDeadlineSeconds", 31_536_001, "less than or equal to 31536000"),
    ("spec.runtime.profile", "Large", LABEL),
    ("spec.runtime.profile", "", "at least 1 chars"),
    ("spec.runtime.executors", 257, "less than or equal to 256"),
    ("spec.runtime.executors", 1.5, "must be of type integer"),
    ("spec.runtime.driver.resources.cpu", "50m", CPU_REMEDY),
    ("spec.runtime.driver.resources.cpu", 1000, CPU_REMEDY),
    ("spec.runtime.driver.resources.cpu", "two", CPU_REMEDY),
    ("spec.runtime.driver.resources.cpuLimit", 2, LIMIT_REMEDY),
    ("spec.runtime.driver.resources", {"cpu": 2, "cpuLimit": "1.5"}, LIMIT_REMEDY),
    ("spec.runtime.driver.resources.memory", "511Mi", DRIVER_REMEDY),
    ("spec.runtime.executor.resources.memory", "767Mi", EXECUTOR_REMEDY),
    ("spec.runtime.executor.resources.memory", "1.5Gi", EXECUTOR_REMEDY),
    ("spec.runtime.executor.resources.memory", "lots", EXECUTOR_REMEDY),
]

LATER: list[Row] = [
    ("spec.source.storeRef.uid", "other", UNKNOWN),
    ("spec.publish", "Progressive", UNKNOWN),
    ("spec.proveSeconds", 5, UNKNOWN),
    ("spec.runtime.nodeSelector", {"disk": "ssd"}, UNKNOWN),
    ("spec.runtime.tolerations", [], UNKNOWN),
    ("spec.runtime.priorityClassName", "high", UNKNOWN),
    ("spec.runtime.image", "mine", UNKNOWN),
    ("spec.runtime.driver.serviceAccountName", "admin", UNKNOWN),
    ("spec.runtime.executor.resources.gpu", 1, UNKNOWN),
]

STORES: list[Row] = [
    ("metadata.name", "a.b", "no dots"),
    ("spec", REMOVED, "Required value"),
    ("spec.pravega.controllerURI", REMOVED, "Required value"),
    ("spec.pravega.controllerURI", "127.0.0.1:9090", ADDRESS_REMEDY),
    ("spec.pravega.controllerURI", "ssl://host:9090", ADDRESS_REMEDY),
    ("spec.pravega.controllerURI", "tls://host", ADDRESS_REMEDY),
    ("spec.pravega.tls", {}, TLS_REMEDY),
    ("spec.pravega.tls", {"serverName": "host"}, TLS_REMEDY),
    ("spec.pravega.tls.serverName", "host:9090", NAME_REMEDY),
    ("spec.pravega.tls.serverName", "*.example.com", NAME_REMEDY),
    ("spec.pravega.tls.serverName", "a" * 254, "Too long"),
    ("spec.pravega.tls.caBundleRef.name", "Trust", "should match"),
    ("spec.pravega.tls.caBundleRef.kind", "File", "Unsupported value"),
    ("spec.pravega.controllerURI", "tcp://user:pass@host:9090", ADDRESS_REMEDY),
    ("spec.pravega.controllerURI", "tcp://host", ADDRESS_REMEDY),
    ("spec.pravega.controllerURI", "tcp://host:0", PORT_REMEDY),
    ("spec.pravega.controllerURI", "tcp://host:65536", PORT_REMEDY),
    ("spec.pravega.controllerURI", f"tcp://{'a' * 300}:9090", "Too long"),
    ("spec.pravega.auth", "basic", "must be of type object"),
    ("spec.pravega.auth.basic", REMOVED, "exactly one way to log in is needed: basic"),
    ("spec.pravega.auth.basic.secretRef", REMOVED, "Required value"),
    ("spec.pravega.auth.basic.secretRef.name", "Login", "should match"),
]

LATER_STORES: list[Row] = [
    ("spec.access.groups", ["team"], UNKNOWN),
    ("spec.kafka", {}, UNKNOWN),
    ("spec.pravega.tls.insecure", True, UNKNOWN),
    ("spec.pravega.auth.basic.password", "1234", UNKNOWN),
    ("spec.pravega.auth.basic.secretRef.namespace", "other", UNKNOWN),
]

LOGIN = changed(STORE, "spec.pravega.auth", {"basic": {"secretRef": {"name": "login"}}})
SECURED = changed(
    changed(STORE, "spec.pravega.controllerURI", "tls://host:9090"),
    "spec.pravega.tls",
    {"caBundleRef": {"name": "trust"}, "serverName": "pravega.example.com"},
)


def spoiled(path: str, value: object) -> dict[str, Any]:
    """Return a store with one wrong field."""
    if "tls." in path:
        return changed(SECURED, path, value)
    return changed(LOGIN if "auth." in path else STORE, path, value)


@pytest.mark.parametrize(("path", "value", "said"), [*COPIES, *LATER], ids=label)
def test_a_wrong_copy_is_refused(applier: Applier, path: str, value: object, said: str) -> None:
    """The API server names the field and a remedy. The model refuses the copy as well."""
    wrong = changed(COPY, path, value)
    refusal = applier.refusal_of_new(wrong)
    assert path in refusal
    assert said in refusal
    with pytest.raises(InvalidSpec) as caught:
        load(text(STORE, wrong))
    assert path in str(caught.value)


@pytest.mark.parametrize(("path", "value", "said"), [*STORES, *LATER_STORES], ids=label)
def test_a_wrong_store_is_refused(applier: Applier, path: str, value: object, said: str) -> None:
    """The API server names the field and a remedy. The model refuses the store as well."""
    wrong = spoiled(path, value)
    refusal = applier.refusal_of_new(wrong)
    assert path in refusal
    assert said in refusal
    with pytest.raises(InvalidSpec) as caught:
        load(text(wrong, COPY))
    assert path in str(caught.value)


def test_a_store_with_tls_is_accepted(applier: Applier) -> None:
    """A store with TLS is accepted with all fields of TLS, and with none."""
    assert not applier.refusal_of_new(SECURED)
    assert not applier.refusal_of_new(changed(SECURED, "spec.pravega.tls", {}))


@pytest.mark.parametrize(("like", "path", "values", "said"), wrong_archives.WRONG, ids=label)
def test_wrong_resources_of_archives_are_refused(
    applier: Applier, like: dict[str, Any], path: str, values: dict[str, object], said: str
) -> None:
    """The API server names the wrong field and a remedy."""
    refusal = applier.refusal_of_new(wrong_archives.made(like, values))
    assert path in refusal
    assert said in refusal


@pytest.mark.parametrize("good", wrong_archives.GOOD, ids=label)
def test_good_resources_of_archives_are_accepted(applier: Applier, good: dict[str, Any]) -> None:
    """The API server accepts what the model accepts."""
    assert not applier.refusal_of_new(good)


@pytest.mark.parametrize(("path", "values", "said"), wrong_archives.CHANGED_ARCHIVES, ids=label)
def test_an_archive_stays_the_same(
    applier: Applier, path: str, values: dict[str, object], said: str
) -> None:
    """Source, destination and format of an archive cannot change. The refusal has a remedy."""
    applier.apply(ARCHIVE)
    refusal = applier.refusal(wrong_archives.made(ARCHIVE, values))
    assert path.rpartition(".")[0] in refusal
    assert said in refusal


@pytest.mark.parametrize(("path", "values", "said"), [*WRONG, *LATER_EPHEMERALS], ids=label)
def test_a_wrong_ephemeral_stream_is_refused(
    applier: Applier, path: str, values: dict[str, object], said: str
) -> None:
    """The API server names the field and a remedy. The model refuses the resource as well."""
    wrong = ephemeral(values)
    refusal = applier.refusal_of_new(wrong)
    assert path in refusal
    assert said in refusal
    with pytest.raises(ValidationError):
        EphemeralStream.model_validate(wrong)


@pytest.mark.parametrize("values", GOOD, ids=label)
def test_a_good_ephemeral_stream_is_accepted(applier: Applier, values: dict[str, object]) -> None:
    """The API server accepts what the model accepts."""
    assert not applier.refusal_of_new(ephemeral(values))


@pytest.mark.parametrize(("path", "values", "said"), few(CHANGED, 2), ids=label)
def test_an_ephemeral_stream_stays_the_same(
    applier: Applier, path: str, values: dict[str, object], said: str
) -> None:
    """The streams of an EphemeralStream cannot change. The refusal has a remedy."""
    applier.apply(EPHEMERAL)
    refusal = applier.refusal(ephemeral(values))
    assert path in refusal
    assert said in refusal
    assert "make another EphemeralStream, under another name" in refusal


def test_a_copy_onto_itself_is_refused(applier: Applier) -> None:
    """The same stream of the same store cannot be source and target."""
    refusal = applier.refusal(changed(COPY, "spec.target.scope", "in"))
    assert "spec.target: " in refusal
    assert "name another stream, scope or store" in refusal


def test_executors_of_no_number_are_refused(applier: Applier) -> None:
    """Settings of executors are refused if their number is 0."""
    runtime = {"executors": 0, "executor": {"resources": {"memory": "2Gi"}}}
    refusal = applier.refusal(changed(COPY, "spec.runtime", runtime))
    assert "spec.runtime.executor: Forbidden" in refusal
    assert "remove executor, or the 0 from executors" in refusal


@pytest.mark.parametrize(
    "path",
    few(
        (
            f"spec.{side}.{field}"
            for field in ("stream", "scope", "storeRef.name")
            for side in ("source", "target")
        ),
        2,
    ),
)
def test_source_and_target_stay(applier: Applier, path: str) -> None:
    """Source and target of a copy cannot change. The refusal has a remedy."""
    applier.apply(COPY)
    refusal = applier.refusal(changed(COPY, path, "another"))
    side = path.split(".")[1]
    assert f"spec.{side}: Forbidden: the {side} cannot be changed" in refusal
    assert "make another copy, under another name" in refusal


@pytest.mark.parametrize(
    ("path", "value"),
    few(
        [
            ("spec.suspend", True),
            ("spec.limits", {"bytesPerSecond": "1Mi"}),
            ("spec.backoffLimit", 1),
            ("spec.activeDeadlineSeconds", 60),
            ("spec.runtime", {"executors": 2}),
            ("spec.target.onExists", "Fail"),
        ],
        2,
    ),
)
def test_all_else_can_be_changed(applier: Applier, path: str, value: object) -> None:
    """Limits, runtime and suspension of a copy can change at any time."""
    applier.apply(COPY)
    assert not applier.refusal(changed(COPY, path, value))


@pytest.mark.parametrize(("path", "value", "said"), [*LATER, *LATER_STORES], ids=label)
def test_server_side_apply_names_an_unknown_field(
    applier: Applier, path: str, value: object, said: str
) -> None:
    """GitOps tools apply on the server, which refuses unknown fields by itself."""
    good = COPY if (path, value, said) in LATER else LOGIN
    assert f".{path}: field not declared in schema" in applier.refusal(
        changed(good, path, value), "--server-side"
    )


def test_unknown_fields_are_never_stored(applier: Applier) -> None:
    """Unknown fields are never stored, even for a client that ignores warnings."""
    wrong = changed(changed(COPY, "spec.publish", "Atomic"), "metadata.name", "unknown")
    assert "publish" not in applier.apply(wrong, "--validate=false")["spec"]
