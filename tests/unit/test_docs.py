"""References in the documents lead to existing places."""

import re
from pathlib import Path

import click
import pytest

from sluice.api.fields.common import GROUP
from sluice.api.registry import KINDS
from sluice.cli import cli
from sluice.core.copy import steps

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
CODE = re.compile(r"`[^`\n]+`")
"""Code in a document. It contains no link, though a pattern may look like one."""
FOR_ENGINEERS = ("ARCHITECTURE.md", "CONTRIBUTING.md")
PACKAGE = ROOT / "operator" / "sluice"
ROOMS = "|".join(sorted(path.name for path in PACKAGE.iterdir() if path.is_dir()))
MODULE = re.compile(
    rf"((?<=sluice/)(?:{ROOMS})(?:/[a-z0-9_]+)*|(?<![\w/.])(?:{ROOMS})(?:/[a-z0-9_]+)+)"
    r"(?:\.py\b)?(?:\.([A-Za-z_]+))?"
)
"""A module of Sluice as documents write it, and the member that they name."""
COMMAND = re.compile(
    r"(?:`|^\$ |^)(?:kubectl )?sluice ([a-z][a-z-]+(?: [a-z][a-z-]+)?)", re.MULTILINE
)
"""A command of Sluice, as code or in a terminal, with the word behind it."""
LINK = re.compile(r"\[([^\[\]]+)\]\(([^)\s#]*)(?:#([^)\s]+))?\)")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    """Every relative link names a file, and every anchor of a link is in that file."""
    for text, target, anchor in LINK.findall(CODE.sub("code", document.read_text())):
        if "://" in target:
            continue
        path = (document.parent / target).resolve() if target else document
        assert path.exists(), f"{document.name}: [{text}] leads to {target}"
        if anchor:
            headings = re.findall(r"^#+ (.+)$", path.read_text(), flags=re.MULTILINE)
            slugs = {re.sub(r"[^a-z0-9 -]", "", h.lower()).replace(" ", "-") for h in headings}
            slugs |= set(re.findall(r'<a id="([^"]+)"></a>', path.read_text()))
            assert anchor in slugs, f"{document.name}: no place {anchor} in {path.name}"


@pytest.mark.parametrize("name", ["protocol.md", "archive-format.md", "security.md"])
def test_claims_name_tests_that_exist(name: str) -> None:
    """Each function that a page of claims names beside a file is defined in that file."""
    document = ROOT / "docs" / name
    claims = [
        (claim, target)
        for text, target, _ in LINK.findall(document.read_text())
        if (claim := text.strip("`")) != text
    ]
    assert len(claims) > 14
    for claim, target in claims:
        path = (document.parent / target).resolve()
        assert f"def {claim}(" in path.read_text() or path.stem == claim, f"{claim} in {target}"


@pytest.mark.parametrize("name", ["docs/operations.md", "helm/sluice/templates/NOTES.txt"])
def test_uninstalling_leaves_no_kind_out(name: str) -> None:
    """The page's commands delete the resources of every kind, and every definition."""
    text = (ROOT / name).read_text()
    deleted = {
        short
        for shorts in re.findall(r"kubectl delete ([a-z,]+) --all --all-namespaces", text)
        for short in shorts.split(",")
    }
    assert deleted == {kind.short for kind in KINDS}
    if definitions := re.search(r"kubectl delete crd ((?:[a-z.]+[ \\\n]*)+)", text):
        named = set(definitions[1].replace("\\", " ").split())
        assert named == {f"{kind.plural}.{GROUP}" for kind in KINDS}


@pytest.mark.parametrize("name", FOR_ENGINEERS)
def test_modules_are_where_pages_for_engineers_say(name: str) -> None:
    """Each named module exists, and has the function or class that is named with it."""
    found = MODULE.findall((ROOT / name).read_text())
    assert found
    for module, member in found:
        path = PACKAGE / f"{module}.py"
        assert path.exists() or path.with_suffix("").is_dir(), f"{name}: no module {module}"
        if member:
            defined = rf"^\s*(?:def|class) {member}\b|^{member}\b"
            assert re.search(defined, path.read_text(), re.MULTILINE), f"{module}.{member}"


@pytest.mark.parametrize("name", FOR_ENGINEERS)
def test_classes_and_fields_that_pages_for_engineers_name_exist(name: str) -> None:
    """Each capitalised name that stands as code also occurs in code, manifests, tests or docs."""
    folders = ("operator", "hack", "helm", "crds", "tests", "docs")
    paths = (path for folder in folders for path in (ROOT / folder).rglob("*.*"))
    texts = (path.read_text() for path in paths if path.suffix in {".py", ".yaml", ".tpl", ".md"})
    known = {word for text in texts for word in re.findall(r"\b[A-Z]\w+", text)}
    text = (ROOT / name).read_text()
    named = {word for code in CODE.findall(text) for word in re.findall(r"\b[A-Z]\w+", code)}
    assert named
    assert named <= known


def test_targets_of_make_that_pages_name_exist() -> None:
    """Each `make ...` that stands as code is a target of the Makefile."""
    pages = ["README.md", *FOR_ENGINEERS, "tests/README.md"]
    text = "\n".join((ROOT / page).read_text() for page in pages)
    named = set(re.findall(r"(?:`|^)make ([a-z-]+)", text, re.MULTILINE))
    assert named
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert named <= set(targets)


def test_commands_that_pages_name_exist() -> None:
    """Each `sluice ...` that stands as code is a command, also behind a group's name."""
    text = "\n".join(document.read_text() for document in DOCUMENTS)
    named = {tuple(words.split()) for words in COMMAND.findall(text)}
    assert len(named) > 30
    context = click.Context(cli)
    for first, *rest in sorted(named):
        command = cli.get_command(context, first)
        assert command is not None, first
        if isinstance(command, click.Group) and rest:
            assert command.get_command(context, rest[0]), f"{first} {rest[0]}"


def test_each_step_has_a_row_in_the_protocol() -> None:
    """Each class of a step begins a row of a table, by itself or among others."""
    known = {
        name
        for name, kind in vars(steps).items()
        if isinstance(kind, type) and kind.__module__ == steps.__name__
    }
    page = (ROOT / "docs" / "protocol.md").read_text()
    rows = re.findall(r"^\| ([^|]+) \|", page, re.MULTILINE)
    named = {name for row in rows for name in row.split(", ")}
    assert known - named == set()
