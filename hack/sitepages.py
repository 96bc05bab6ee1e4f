"""MkDocs' hooks, which choose the files of the documentation's site.

Each file keeps its path in the repository. So the links of a checkout work on the site, and MkDocs
checks them. Besides docs/, the site has the repository's other pages, a page for each reason, and
every file that a page links to, such as the test that shows a claim.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "hack"), str(ROOT / "tests")]  # neither folder is on MkDocs' path

import reasonpages  # noqa: E402 - see the line above
from sluice.core.catalogue import PAGE  # noqa: E402 - as above

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mkdocs.config.defaults import MkDocsConfig

OTHER_PAGES: Final = (
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "tests/README.md",
)
_CODE: Final = re.compile(r"^```.*?^```|`[^`\n]+`", re.MULTILINE | re.DOTALL)
_LINK: Final = re.compile(r"\]\(([^)\s#]+)")
_SECTION: Final = "Conditions"
"""The section of the navigation that gets the pages of reasons."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add the pages of reasons to the navigation."""
    (section,) = (found for found in _sections(config.nav) if _SECTION in found)
    section[_SECTION] += [
        {group: [{name: reasonpages.path_of(name)} for name in names]}
        for group, names in reasonpages.groups().items()
    ]
    return config


def _sections(nav: Any) -> Iterator[dict[str, Any]]:
    """Yield all sections of the navigation, at any depth."""
    for entry in nav if isinstance(nav, list) else ():
        if isinstance(entry, dict):
            yield entry
            for inner in entry.values():
                yield from _sections(inner)


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Put each file at its path in the repository, and add the others."""
    theirs = [file for file in files if file.src_dir != config.docs_dir]
    paths = {
        f"docs/{file.src_uri}": Path(config.docs_dir, file.src_uri)
        for file in files
        if file.src_dir == config.docs_dir
    }
    paths |= {name: ROOT / name for name in OTHER_PAGES}
    texts = {
        name: path.read_text(encoding="utf-8")
        for name, path in paths.items()
        if path.suffix == ".md"
    }
    guides = {
        name.removeprefix("docs/"): text
        for name, text in texts.items()
        if name.startswith("docs/") and name != PAGE
    }
    texts[PAGE] = reasonpages.linked(texts[PAGE])
    texts |= reasonpages.pages(guides)
    for page, text in texts.items():
        for name in _named(page, text):
            paths.setdefault(name, ROOT / name)
    made = [File.generated(config, name, content=text) for name, text in texts.items()]
    assets = [
        File.generated(config, name, abs_src_path=str(path))
        for name, path in paths.items()
        if name not in texts
    ]
    return Files([*theirs, *made, *assets])


def _named(page: str, text: str) -> Iterator[str]:
    """Yield the paths of the repository's files that a page links to.

    Raises:
        PluginError: a link leads out of the repository, or to nothing.
    """
    for target in _LINK.findall(_CODE.sub("", text)):
        if "://" in target or target.startswith("mailto:"):
            continue
        path = (ROOT / page).parent.joinpath(target).resolve()
        if path.suffix == ".md":
            continue  # MkDocs checks links to pages
        if not path.is_relative_to(ROOT) or not path.is_file():
            raise PluginError(f"{page}: the link to {target} leads to no file of the repository")
        yield path.relative_to(ROOT).as_posix()
