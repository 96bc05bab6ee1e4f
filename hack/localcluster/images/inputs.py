"""Keys that tell whether the inputs of an image's build have changed."""

import hashlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from localcluster.images.image import Image

_TOKEN = re.compile(r"\*\*/|\*\*|\*|\?|\\.|\[[^]]*]|.", re.DOTALL)
_MEANING = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
_WILD = re.compile(r"[*?\[\\]")


def input_key(image: Image, base: str) -> str:
    """Return a key that changes with any input of the build.

    Args:
        image: the image.
        base: id of the base image.
    """
    ignore = image.context / ".dockerignore"
    rules = Rules.parse(ignore.read_text() if ignore.exists() else "")
    settings = [base, image.recipe.read_text(), sorted(image.build_args.items())]
    digest = hashlib.sha256(json.dumps(settings).encode())
    for path in sorted(_seen(image.context, rules)):
        file = image.context / path
        if file.is_symlink():
            what = f"-> {file.readlink()}"
        else:
            what = f"{file.stat().st_mode:o} {hashlib.sha256(file.read_bytes()).hexdigest()}"
        digest.update(f"\n{path} {what}".encode())
    return digest.hexdigest()


@dataclass(frozen=True)
class Rule:
    """One line of a .dockerignore.

    Attributes:
        pattern: pattern of paths; everything below them matches too.
        excludes: whether the rule excludes these paths; otherwise it includes them again.
    """

    pattern: str
    excludes: bool

    def fits(self, path: str) -> bool:
        """Tell whether the rule matches a path or a folder above it."""
        tokens: list[str] = _TOKEN.findall(self.pattern)
        return re.fullmatch(f"{''.join(map(_regex, tokens))}(?:/.*)?", path) is not None


@dataclass(frozen=True)
class Rules:
    """A .dockerignore. The last line that matches a path decides.

    Attributes:
        rules: the lines.
    """

    rules: Sequence[Rule]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the rules of a file's text."""
        lines = [line.strip() for line in text.splitlines()]
        return cls(
            [
                Rule(os.path.normpath(line.lstrip("!").strip()).strip("/"), line[0] != "!")
                for line in lines
                if line and not line.startswith("#")
            ]
        )

    def excludes(self, path: str) -> bool:
        """Tell whether a file or a folder is excluded from the build."""
        return next((rule.excludes for rule in reversed(self.rules) if rule.fits(path)), False)

    def excludes_all_of(self, folder: str) -> bool:
        """Tell whether a folder is excluded, and certainly everything in it."""
        return self.excludes(folder) and not any(
            _WILD.search(rule.pattern) or rule.pattern.startswith(f"{folder}/")
            for rule in self.rules
            if not rule.excludes
        )


def _seen(context: Path, rules: Rules) -> Iterator[str]:
    """Yield the files that the build sees, including links to folders."""
    for folder, folders, files in os.walk(context):
        inside = Path(folder).relative_to(context)
        below = [name for name in folders if not (Path(folder) / name).is_symlink()]
        links = [name for name in folders if name not in below]
        folders[:] = [name for name in below if not rules.excludes_all_of(str(inside / name))]
        yield from (
            path for name in [*files, *links] if not rules.excludes(path := str(inside / name))
        )


def _regex(token: str) -> str:
    if token in _MEANING:
        return _MEANING[token]
    if token.startswith("["):
        return token
    return re.escape(token[-1])
