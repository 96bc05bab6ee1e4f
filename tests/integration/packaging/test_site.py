"""The documentation's site. It is built once, as `make docs` builds it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from html import unescape
from pathlib import Path

import pytest
import yaml

import gencatalogue
import reasonpages
from reasonpages import REASONS
from sluice.core.catalogue import PAGE, failures

ROOT = Path(__file__).parents[3]


def build(config: Path, into: Path) -> subprocess.CompletedProcess[str]:
    """Build the site of a configuration as the Makefile does, and return the finished process."""
    (words,) = re.findall(r"\$\(BIN\)/mkdocs (build .*?)(?:  #|$)", (ROOT / "Makefile").read_text())
    return subprocess.run(
        [
            *(sys.executable, "-m", "mkdocs", *words.split()),
            *(f"--config-file={config}", f"--site-dir={into}"),
        ],
        check=False,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the site."""
    folder = tmp_path_factory.mktemp("site")
    done = build(ROOT / "mkdocs.yml", folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def article(site: Path, path: str) -> str:
    """Return the text of a page, without navigation and marks."""
    page = (site / path / "index.html").read_text()
    inner = page[page.index("<article") : page.index("</article>")]
    return " ".join(unescape(re.sub(r"<[^>]+>", "", inner)).split())


def test_each_reason_has_a_page(site: Path) -> None:
    """A reason's page has its meaning and remedy. The page of all reasons links to it."""
    every = (site / "docs" / "conditions" / "index.html").read_text()
    for reason in REASONS:
        text = article(site, reasonpages.path_of(reason.name).removesuffix(".md"))
        for sentence in (reason.means, reason.remedy):
            assert " ".join(sentence.replace("`", "").split()) in text, reason.name
        anchor = reason.name.lower()
        assert f'<a id="{anchor}"></a><a href="{anchor}/"><code>{reason.name}</code></a>' in every


def test_a_reason_shows_an_example_and_the_guides_that_name_it(site: Path) -> None:
    """The page shows a message of the operator's decisions, and links to sections of guides."""
    text = article(site, "docs/conditions/targetexists")
    assert "Ready=False TargetExists" in text
    page = (site / "docs" / "conditions" / "targetexists" / "index.html").read_text()
    assert 'href="../../scopecopy/#targets-that-are-there"' in page


def test_pages_of_reasons_follow_from_the_catalogue_alone() -> None:
    """A guide's mention of a reason counts once for each section, and not in a block of code."""
    guide = "# A\n\n`Copying` `Copying`\n\n## B c, D\n\n`Copying`\n\n```\n# `Starting`\n```\n"
    pages = reasonpages.pages({"a.md": guide})
    assert set(pages) == {reasonpages.path_of(reason.name) for reason in REASONS}
    links = re.findall(r"^- (.*)$", pages[reasonpages.path_of("Copying")], re.MULTILINE)
    assert links == ["[A](../a.md)", "[A, B c, D](../a.md#b-c-d)"]
    assert "In the guides" not in pages[reasonpages.path_of("Starting")]
    linked = reasonpages.linked((gencatalogue.ROOT / PAGE).read_text())
    assert linked.count("](conditions/") == len(REASONS)


def test_a_failures_page_says_what_becomes_of_a_copy() -> None:
    """A failure's page says when the next attempt is, and whether staged bytes stay."""
    pages = reasonpages.pages({})
    for failure in (one for one in failures() if "StreamCopy" in one.kinds):
        page = pages[reasonpages.path_of(failure.name)]
        assert f": {gencatalogue.reaction(failure)} |" in page, failure.name
        kept = "stay" if gencatalogue.keeps(failure) else "are deleted once the copy is stalled"
        assert f"| staged bytes | {kept} |" in page, failure.name


def test_search_finds_all_pages(site: Path) -> None:
    """The index of search has each page of the documentation, and each page of a reason."""
    index = json.loads((site / "search" / "search_index.json").read_text())
    found = {entry["location"].partition("#")[0] for entry in index["docs"]}
    pages = {page.name for page in (ROOT / "docs").glob("*.md")}
    wanted = {f"docs/{name.removesuffix('.md')}/" for name in pages}
    wanted |= {f"{reasonpages.path_of(reason.name).removesuffix('.md')}/" for reason in REASONS}
    wanted |= {"", "ARCHITECTURE/", "CONTRIBUTING/", "CHANGELOG/", "tests/"}
    assert wanted <= found


def test_tests_that_pages_name_are_there(site: Path) -> None:
    """A page's link to a test leads to a copy of the test's file."""
    page = (site / "docs" / "protocol" / "index.html").read_text()
    target = "tests/unit/engine/copy/test_protocol_machine.py"
    assert f'href="../../{target}"' in page
    assert (site / target).read_bytes() == (ROOT / target).read_bytes()


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    """A page loads styles, fonts and scripts from the site only."""
    page = (site / "index.html").read_text()
    loaded = re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="([^"]+)"', page)
    assert loaded
    assert not [url for url in loaded if "://" in url or url.startswith("//")]


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("changes", "complaints"),
    [
        (
            {"conditions.md#reasons": "conditions.md#rhymes", "(gitops.md#": "(gitbox.md#"},
            ["does not contain an anchor '#rhymes'", "'docs/gitbox.md' is not found"],
        ),
        (
            {"conditions.md#reasons": "../../passwd"},
            ["../../passwd leads to no file of the repository"],
        ),
    ],
    ids=["places and pages", "files"],
)
def test_a_link_to_nothing_fails_the_build(
    tmp_path: Path, changes: dict[str, str], complaints: list[str]
) -> None:
    """A link to a missing section, page or file fails the build.

    So does one out of the repository.
    """
    docs = tmp_path / "docs"
    shutil.copytree(ROOT / "docs", docs)
    page = docs / "ephemeralstream.md"
    text = page.read_text()
    for right, wrong in changes.items():
        assert right in text
        text = text.replace(right, wrong)
    page.write_text(text)
    settings = {
        "INHERIT": str(ROOT / "mkdocs.yml"),
        "docs_dir": str(docs),
        "watch": [],  # mkdocs.yml names folders beside itself, which are not here
        "hooks": [str(ROOT / "hack" / "sitepages.py")],
    }
    (tmp_path / "mkdocs.yml").write_text(yaml.safe_dump(settings))
    done = build(tmp_path / "mkdocs.yml", tmp_path / "site")
    assert done.returncode != 0
    for complaint in complaints:
        assert complaint in done.stdout + done.stderr
