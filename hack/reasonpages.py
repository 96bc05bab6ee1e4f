"""Make the site's page of each reason, from the catalogue.

A page has the reason's row in the table of docs/conditions.md, the messages of a resource in that
state (`tests/support/situations/situations.py`), and the places in the guides that name the reason.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import gencatalogue
from sluice.core.catalogue import NORMAL, PAGE, FailureReason, Reason, ReasonPlace, anchor, failures
from sluice.core.catalogue.reason import COPIES, EPHEMERAL, STORE
from support.situations.situations import SITUATIONS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from support.situations.situation import Situation

FOLDER: Final = PAGE.removesuffix(".md")
"""The folder of the pages, beside the page of all reasons."""
REASONS: Final[tuple[Reason | FailureReason, ...]] = (*NORMAL, *failures())
STATES: Final = "States"
_FOLLOWS: Final = "what-follows-from-a-failure"
_OWN_ROW: Final = re.compile(r'^(\| <a id="(\w+)"></a>)(`\w+`)', re.MULTILINE)
_HEADING: Final = re.compile(r"^#+ (.+)$")


def path_of(reason: str) -> str:
    """Return the path of a reason's page."""
    return f"{FOLDER}/{reason.lower()}.md"


def linked(page: str) -> str:
    """Return the page of all reasons, with a link from each reason to its own page."""
    folder = FOLDER.rpartition("/")[2]
    return _OWN_ROW.sub(rf"\1[\3]({folder}/\2.md)", page)


def groups() -> dict[str, list[str]]:
    """Return the names of all reasons, by the group under which the site lists them."""
    found: dict[str, list[str]] = {STATES: [reason.name for reason in NORMAL]}
    for failure in failures():
        found.setdefault(f"Failures: {failure.category}", []).append(failure.name)
    return {group: sorted(names) for group, names in found.items()}


def pages(guides: Mapping[str, str]) -> dict[str, str]:
    """Return the pages of all reasons by path.

    Args:
        guides: the text of each page that may name a reason, by its path from docs/.
    """
    mentions = _mentions(guides)
    return {
        path_of(reason.name): _page(reason, mentions.get(reason.name, [])) for reason in REASONS
    }


def _page(reason: Reason | FailureReason, mentions: list[str]) -> str:
    """Return the page of a reason."""
    where, hint = PAGE.rpartition("/")[2], anchor(reason.name).partition("#")[2]
    parts = [
        f"# {reason.name}",
        f"{reason.means}\n\n**What to do:** {reason.remedy}",
        gencatalogue.table(("", ""), _facts(reason)),
        *_example(reason.name),
        *(["## In the guides\n\n" + "\n".join(mentions)] if mentions else []),
        f"All reasons: [conditions](../{where}#{hint}).",
    ]
    return "\n\n".join(parts) + "\n"


def _facts(reason: Reason | FailureReason) -> Iterator[tuple[str, str]]:
    """Yield the rows of a reason's table."""
    yield "kind", gencatalogue.kinds(reason.kinds)
    if isinstance(reason, Reason):
        yield "appears in", gencatalogue.PLACES[reason.place]
        yield "event", "Warning" if reason.warning else "Normal"
        return
    of_copies = bool({*reason.kinds} - {*STORE, *EPHEMERAL})
    more = ", `status.lastFailure`" if of_copies else ""
    yield "appears in", f"{gencatalogue.PLACES[ReasonPlace.READY]}{more}"
    yield "event", "Warning"
    yield "category", reason.category
    if not of_copies:
        return
    then, where = gencatalogue.what_follows(reason), PAGE.rpartition("/")[2]
    yield "a copy then", f"[{then}](../{where}#{_FOLLOWS}): {gencatalogue.reaction(reason)}"
    if {*reason.kinds} & {*COPIES}:
        kept = gencatalogue.keeps(reason)
        yield "staged bytes", "stay" if kept else "are deleted once the copy is stalled"
    if not reason.waits:
        yield "to try at once", "`sluice retry NAME`, or a new value of `sluice.dev/requestedAt`"


def _example(reason: str) -> Iterator[str]:
    """Yield a section with the messages of a resource that has the reason, if there is one."""
    for situation in SITUATIONS:
        lines = list(_conditions(situation, reason))
        if lines:
            means = situation.means.rstrip(".")
            article = "An" if situation.kind.startswith("E") else "A"
            about = f"{article} {situation.kind}: {means[:1].lower()}{means[1:]}."
            yield "## Example\n\n" + about + "\n\n```text\n" + "\n".join(lines) + "\n```"
            return


def _conditions(situation: Situation, reason: str) -> Iterator[str]:
    """Yield the conditions of a situation that have the reason, each message once."""
    told = set()
    for condition in situation.body["status"].get("conditions", []):
        if condition["reason"] == reason:
            yield f"{condition['type']}={condition['status']}  {reason}"
            if condition["message"] not in told:
                yield f"  {condition['message']}"
            told.add(condition["message"])


def _mentions(guides: Mapping[str, str]) -> dict[str, list[str]]:
    """Return for each reason the list of links to the sections that name it."""
    found: dict[str, list[str]] = {}
    names = "|".join(reason.name for reason in REASONS)
    named = re.compile(rf"`({names})`")
    for path, text in guides.items():
        title, heading, code = "", "", False
        for line in text.splitlines():
            code ^= line.startswith("```")
            if not code and (match := _HEADING.match(line)):
                heading = match[1]
                title = title or heading
            for name in () if code else named.findall(line):
                place = "" if heading == title else f"#{slug(heading)}"
                section = "" if heading == title else f", {heading}"
                link = f"- [{title}{section}](../{path}{place})"
                if link not in found.setdefault(name, []):
                    found[name].append(link)
    return found


def slug(heading: str) -> str:
    """Return the anchor of a heading, as code hosting sites form it."""
    return re.sub(r"[^a-z0-9 _-]", "", heading.lower()).replace(" ", "-")
