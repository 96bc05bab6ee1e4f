"""What the documents point to is there."""

import re
from pathlib import Path

import pytest

from sluice.api.fields.common import GROUP
from sluice.api.schema.schema import KINDS

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
CODE = re.compile(r"`[^`\n]+`")
"""What stands in it is no link, though a pattern may look like one."""
LINK = re.compile(r"\[([^\[\]]+)\]\(([^)\s#]*)(?:#([^)\s]+))?\)")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    """Every relative link names a file, and every place that a link names is in it."""
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
    """Who follows the page deletes the resources of every kind, and every definition."""
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
