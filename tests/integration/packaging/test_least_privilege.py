"""The operator's rights against its code: each call has its right, and each right its call."""

import ast
from collections.abc import Iterator

from sluice.kube.api import kinds as known
from sluice.kube.api.kinds import (
    EPHEMERAL_STREAM,
    SCOPE_COPY,
    STREAM_ARCHIVE,
    STREAM_COPY,
    STREAM_QUERY,
    STREAM_STORE,
    Kind,
)
from support.kube.chart import ROOT, render, rules

SOURCES = [
    path
    for folder in ("kube", "handlers")
    for path in (ROOT / "operator" / "sluice" / folder).rglob("*.py")
    if path.name != "client.py"
]
OURS = [STREAM_COPY, SCOPE_COPY, STREAM_ARCHIVE, STREAM_STORE, EPHEMERAL_STREAM, STREAM_QUERY]
CALLS = {"get", "list", "create", "patch", "apply", "delete"}
EXPIRING = {"situation.kind": [STREAM_COPY, SCOPE_COPY]}
"""Variables that stand for fewer kinds: only resources with `ttlSecondsAfterFinished` expire."""
CHILDREN = {known.CONFIG_MAP, known.JOB}

Right = tuple[str, str, str]


def calls() -> Iterator[tuple[str, list[Kind], bool]]:
    """Yield the code's calls to the API server, as (call, kinds, whether on the status)."""
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            on, name = ast.unparse(node.func.value), node.func.attr
            words = [ast.unparse(word) for word in node.args]
            if on in {"self._api", "api"} and name in CALLS and path.name != "finalizers.py":
                status = any(word.arg == "subresource" for word in node.keywords)
                yield name, _kinds(words[0]), status
            elif on == "finalizers":
                for call in ("get", "patch"):
                    yield call, _kinds(words[1]), False
            elif on == "kopf.on" and name == "event":
                for call in ("list", "watch"):
                    yield call, _kinds(words[2].removesuffix(".plural")), False


def _kinds(word: str) -> list[Kind]:
    """Return the kinds that an argument names; for a variable, Sluice's own kinds."""
    return [getattr(known, word)] if word.isupper() else EXPIRING.get(word, OURS)


def needed() -> set[Right]:
    """Return the rights that the calls need."""
    found = set()
    for call, kinds, status in calls():
        for kind in kinds:
            plural = f"{kind.plural}/status" if status else kind.plural
            verbs = {"patch"} if call == "apply" else {call}
            if call == "apply" and kind in CHILDREN:
                verbs.add("create")
            found |= {(kind.group, plural, verb) for verb in verbs}
    return found


def test_every_right_has_a_call_and_every_call_its_right() -> None:
    """The chart grants the operator exactly the rights that its code uses."""
    objects = render()
    granted = {
        right[:3]
        for name in ("sluice-operator", "sluice-cluster-identity", "sluice-operator-lease")
        for right in rules(objects, name)
    }
    assert len(granted) > 15
    assert granted == needed()
