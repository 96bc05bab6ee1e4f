"""The report on differences between two builds of one image."""

from __future__ import annotations

import io
import tarfile
from typing import TYPE_CHECKING

from localcluster.images.reproduce import differences

if TYPE_CHECKING:
    from pathlib import Path


def layer(folder: Path, name: str, **files: tuple[str, int]) -> Path:
    """Write a layer with files, each with its content and its time, and return its path."""
    path = folder / name
    with tarfile.open(path, "w") as packed:
        for file, (content, time) in files.items():
            one = tarfile.TarInfo(file)
            one.size, one.mtime = len(content), time
            packed.addfile(one, io.BytesIO(content.encode()))
    return path


def test_each_file_that_differs_is_named(tmp_path: Path) -> None:
    """The report names files whose content or time differs, and files in only one of the layers."""
    first = layer(tmp_path, "1", same=("a", 1), other=("b", 1), old=("c", 1), gone=("d", 1))
    second = layer(tmp_path, "2", same=("a", 1), other=("x", 1), old=("c", 2), new=("d", 1))
    found = list(differences([first], [second]))
    assert [line.split(": ")[:2] for line in found] == [
        ["layer 1", name] for name in ("other", "old", "gone", "new")
    ]


def test_layers_of_one_digest_are_not_compared(tmp_path: Path) -> None:
    """Layers' files are named by their digests, so equal names are not opened."""
    missing = tmp_path / "digest"
    assert list(differences([missing], [missing])) == []


def test_an_order_and_a_number_are_differences(tmp_path: Path) -> None:
    """The order of files and the number of layers are parts of a digest."""
    first = layer(tmp_path, "1", one=("a", 1), two=("b", 1))
    second = layer(tmp_path, "2", two=("b", 1), one=("a", 1))
    assert list(differences([first], [second])) == ["layer 1: the order of its files"]
    assert list(differences([first], [])) == ["1 layers, and 0"]
