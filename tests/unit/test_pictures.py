"""Pictures in the documents."""

from pathlib import Path

import pytest

from support.command import pictures

PICTURES = sorted((Path(__file__).parents[2] / "docs" / "images").glob("*.svg"))


@pytest.mark.parametrize("picture", PICTURES, ids=lambda path: path.name)
def test_a_picture_draws_the_text_that_it_describes(picture: Path) -> None:
    """Readers of the description get the same text as viewers of the picture."""
    described = pictures.text_of(picture)
    assert pictures.drawn_text(picture) == "".join(described.split())


@pytest.mark.parametrize("picture", PICTURES, ids=lambda path: path.name)
def test_a_picture_loads_nothing(picture: Path) -> None:
    """It has no address but that of its own format, so it needs no other server."""
    text = picture.read_text()
    assert text.count("://") == text.count("http://www.w3.org/2000/svg") + text.count(
        "<!-- Generated with Rich https://www.textualize.io -->"
    )
    assert "url(" not in text.replace("url(#", "")


def test_a_picture_has_its_colours_and_its_text(tmp_path: Path) -> None:
    """Colours of the terminal are drawn. Markup and braces stay as they are."""
    drawn = pictures.draw("x", "show {a} <b>", "\x1b[31mred\x1b[0m & {green}\n")
    again = pictures.draw("x", "show {a} <b>", "\x1b[31mred\x1b[0m & {green}\n")
    assert drawn == again
    assert pictures.described(drawn) == "$ show {a} <b>\nred & {green}"
    (tmp_path / "x.svg").write_text(drawn)
    assert pictures.drawn_text(tmp_path / "x.svg") == "$show{a}<b>red&{green}"
    assert "@font-face" not in drawn
