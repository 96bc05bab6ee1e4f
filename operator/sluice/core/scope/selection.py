"""Select the streams of a scope that are copied, and name their targets."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from sluice.core.claims.claim import MARKER
from sluice.core.scope.scope import MOST_NAMES, LeftOut, Why
from sluice.core.values.archive_layout import below, is_path
from sluice.core.values.scratch import is_scratch
from sluice.errors import InvalidSpec

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from sluice.core.scope.request import Rename, ScopeRequest, Selector

_INTERNAL: Final = "_"
"""Prefix of the names of streams that a store, or Sluice, keeps for itself."""

_NAME: Final = re.compile(r"(?!.{250})_?[A-Za-z0-9.-]+")


class Chosen(NamedTuple):
    """Stream to copy: its name, and its target's name."""

    stream: str
    target: str


class Choice(NamedTuple):
    """Streams of a scope to copy, by name, and streams left out, by reason."""

    chosen: tuple[Chosen, ...]
    left_out: tuple[LeftOut, ...]


def choose(
    names: Iterable[str],
    *,
    tagged: Mapping[str, Collection[str]],
    left: Mapping[str, Why],
    request: ScopeRequest,
    one_store: bool,
) -> Choice:
    """Choose the streams of a scope that a request copies.

    Args:
        names: the names of all streams in the scope, also of internal ones.
        tagged: for each tag that a selector names, the names of the streams that have it.
        left: streams that are left out even if they are selected, and why.
        request: the request.
        one_store: whether source and target are in the same store.

    Raises:
        InvalidSpec: two streams would have one target, a target's name is impossible, or a
            stream would be copied to itself.
    """
    chosen: list[Chosen] = []
    reasons: dict[str, Why] = {}
    for name in sorted(set(names)):
        why = _unselected(name, tagged, request) or left.get(name)
        if why is None:
            chosen.append(Chosen(name, renamed(name, request.rename)))
        else:
            reasons[name] = why
    _refuse_impossible(chosen, request, one_store=one_store)
    return Choice(tuple(chosen), left_out(reasons))


def left_out(reasons: Mapping[str, Why]) -> tuple[LeftOut, ...]:
    """Group streams that are left out by the reason of each."""
    names: defaultdict[Why, list[str]] = defaultdict(list)
    for name, why in sorted(reasons.items()):
        names[why].append(name)
    return tuple(
        LeftOut(why=why, count=len(names[why]), streams=tuple(names[why][:MOST_NAMES]))
        for why in Why
        if why in names
    )


def joined(*parts: Sequence[LeftOut]) -> tuple[LeftOut, ...]:
    """Join several groupings of streams that are left out, by reason."""
    found = []
    for why in Why:
        same = [one for part in parts for one in part if one.why is why]
        if same:
            names = sorted(name for one in same for name in one.streams)
            count = sum(one.count for one in same)
            found.append(LeftOut(why=why, count=count, streams=tuple(names[:MOST_NAMES])))
    return tuple(found)


def selected(
    names: Iterable[str], *, tagged: Mapping[str, Collection[str]], request: ScopeRequest
) -> list[str]:
    """List the streams that the selectors of a request select, sorted."""
    return sorted(name for name in set(names) if _unselected(name, tagged, request) is None)


def tags_of(request: ScopeRequest) -> tuple[str, ...]:
    """List the tags that the selectors of a request name, sorted."""
    selectors = (*request.include, *request.exclude)
    return tuple(sorted({one.value for one in selectors if one.type == "Tag"}))


def renamed(name: str, renames: Sequence[Rename]) -> str:
    """Return the name of a stream's target, by the first rename that fits."""
    for one in renames:
        if name.startswith(one.from_prefix):
            return one.to_prefix + name.removeprefix(one.from_prefix)
    return name


def origins_of(target: str, renames: Sequence[Rename]) -> tuple[str, ...]:
    """List the names of the streams whose target would have this name."""
    names = [target]
    names += [
        one.from_prefix + target.removeprefix(one.to_prefix)
        for one in renames
        if target.startswith(one.to_prefix)
    ]
    return tuple(name for name in dict.fromkeys(names) if renamed(name, renames) == target)


def _unselected(
    name: str, tagged: Mapping[str, Collection[str]], request: ScopeRequest
) -> Why | None:
    """Tell why the selectors do not select a stream; None if they do."""
    if is_scratch(name):  # it goes in a moment
        return Why.INTERNAL
    if name.startswith(_INTERNAL) and not _is_named(name, request.include):
        return Why.INTERNAL
    included = not request.include or any(_fits(one, name, tagged) for one in request.include)
    if not included or any(_fits(one, name, tagged) for one in request.exclude):
        return Why.NOT_SELECTED
    return None


def _is_named(name: str, include: Sequence[Selector]) -> bool:
    """Tell whether a selector names an internal stream by its `_`. Markers are never selected."""
    return not name.startswith(MARKER) and any(
        one.type != "Tag" and one.value.startswith(_INTERNAL) and _fits(one, name, {})
        for one in include
    )


def _fits(selector: Selector, name: str, tagged: Mapping[str, Collection[str]]) -> bool:
    match selector.type:
        case "Exact":
            return name == selector.value
        case "Prefix":
            return name.startswith(selector.value)
        case "Tag":
            return name in tagged.get(selector.value, ())


def _refuse_impossible(chosen: Sequence[Chosen], request: ScopeRequest, *, one_store: bool) -> None:
    """Raise InvalidSpec if a target cannot be made, before any target is made."""
    origin: dict[str, str] = {}
    for stream, target in chosen:
        if one_store and request.source == request.target and stream == target:
            raise InvalidSpec(
                f"{request.source}/{stream} would be copied to itself",
                field="spec.target",
                remedy="Rename all streams, exclude those that are not, or name another scope.",
            )
        if request.archive is not None:
            _refuse_path(stream, below(request.target, target))
        elif target != stream or request.restore is not None:
            _refuse_name(stream, target)
        if target in origin:
            raise InvalidSpec(
                f"the streams {origin[target]} and {stream} would both be copied to {target}",
                field="spec.rename",
                remedy="Rename one of them otherwise, or exclude it.",
            )
        origin[target] = stream


def _refuse_name(stream: str, target: str) -> None:
    internal = target.startswith(_INTERNAL)
    kept = target == stream and not target.startswith(MARKER)
    if _NAME.fullmatch(target) and (kept or not internal):
        return
    how = "renamed to" if target != stream else "restored as"
    raise InvalidSpec(
        f"the stream {stream} would be {how} {target!r}, which no stream can be called",
        field="spec.rename",
        remedy="Names have 1 to 249 letters, digits, '.' and '-', and no '_'.",
    )


def _refuse_path(stream: str, path: str) -> None:
    if is_path(path):
        return
    raise InvalidSpec(
        f"the stream {stream} cannot be archived at {path!r}, which no archive's path can be",
        field="spec.rename",
        remedy="Rename it, such as with fromPrefix and toPrefix, or exclude it.",
    )
