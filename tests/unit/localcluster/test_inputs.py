from pathlib import Path

import pytest

from localcluster.images.image import Image
from localcluster.images.inputs import Rules, input_key

CHANGES = ["content", "mode", "name", "link", "recipe", "base", "argument"]

ONLY_SOME = """\
# a comment
*
!docker
!operator/sluice
**/__pycache__
"""


@pytest.mark.parametrize(
    ("text", "path", "excluded"),
    [
        (ONLY_SOME, "README.md", True),
        (ONLY_SOME, "docker/entrypoint", False),
        (ONLY_SOME, "operator/other/file.py", True),
        (ONLY_SOME, "operator/sluice/core/copy/plan.py", False),
        (ONLY_SOME, "operator/sluice/__pycache__/plan.pyc", True),
        ("", "anything", False),
        ("*.md", "README.md", True),
        ("*.md", "docs/guide.md", False),
        ("**/*.md", "docs/deep/guide.md", True),
        ("**/*.md", "README.md", True),
        ("/build/", "build/x", True),
        ("bu?ld", "build", True),
        ("[ab].txt", "b.txt", True),
        ("*.md\n!README.md", "README.md", False),
        ("!README.md\n*.md", "README.md", True),
        ("docs", "docs2", False),
        (r"\*", "a", False),
    ],
)
def test_the_last_rule_that_fits_decides(text: str, path: str, *, excluded: bool) -> None:
    """The rules of a .dockerignore have the same meaning as for docker."""
    assert Rules.parse(text).excludes(path) is excluded


def test_folders_without_exceptions_are_not_walked() -> None:
    """A folder is skipped as a whole only if no later rule includes a part of it."""
    rules = Rules.parse(ONLY_SOME)
    assert rules.excludes_all_of(".venv")
    assert not rules.excludes_all_of("operator")
    assert not Rules.parse("*\n!**/keep").excludes_all_of(".venv")


@pytest.fixture
def image(tmp_path: Path) -> Image:
    """Return an image whose context has one file that the build sees, and one that it does not."""
    (tmp_path / "Dockerfile").write_text("FROM scratch\n")
    (tmp_path / ".dockerignore").write_text("*\n!seen\n")
    for folder in ("seen", "unseen"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "file").write_text("1")
    return Image("localhost/it", tmp_path)


def test_what_the_build_does_not_see_changes_nothing(image: Image) -> None:
    """A change of files that .dockerignore excludes keeps the key."""
    before = input_key(image, "base")
    (image.context / "unseen" / "file").write_text("2")
    assert input_key(image, "base") == before


@pytest.mark.parametrize("change", CHANGES)
def test_what_the_build_sees_changes_the_key(image: Image, change: str) -> None:
    """The key covers content, mode and name of each file, and recipe, base and arguments."""
    before = input_key(image, "base")
    file, base, built = image.context / "seen" / "file", "base", image
    match change:
        case "content":
            file.write_text("2")
        case "mode":
            file.chmod(0o755)
        case "name":
            file.rename(file.with_name("other"))
        case "link":
            file.unlink()
            file.symlink_to("elsewhere")
        case "recipe":
            image.recipe.write_text("FROM scratch\nUSER 1\n")
        case "base":
            base = "other"
        case _:
            built = Image(image.name, image.context, build_args={"A": "1"})
    assert input_key(built, base) != before
