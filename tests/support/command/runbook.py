"""A page of commands, which a test runs as a reader of the page would at a terminal.

The comment `<!-- file: NAME -->` before a block of the page marks a file. The comment
`<!-- step: NAME -->` marks a script of commands.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from localcluster import tools
from support.command.warm import SLUICE
from support.until import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_BLOCK: Final = re.compile(
    r"^(?:<!-- (file|step): ([\w.-]+) -->\n)?```(sh|yaml)\n(.*?)^```$", re.MULTILINE | re.DOTALL
)
_SCRIPT: Final = """\
set -euo pipefail
if [ -e .exported ]; then . ./.exported; fi
{commands}
export -p > .exported
"""


@dataclass
class Runbook:
    """The page, and the folder in which its commands run.

    Args:
        page: the page.
        folder: the folder, into which the page's files are written.
        texts: replacements in this test, by regular expressions for texts of the page.
        kubeconfig: the kubeconfig of the commands; None if they need none.
    """

    page: Path
    folder: Path
    texts: Mapping[str, str]
    kubeconfig: Path | None = None
    _steps: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        """Write the page's files into the folder."""
        self._steps = steps(self.page)
        for name, text in files(self.page).items():
            (self.folder / name).write_text(self._here(text))
        programs = self.folder / "bin"
        programs.mkdir()
        (programs / "sluice").symlink_to(SLUICE)
        if self.kubeconfig is not None:
            (programs / "kubectl").symlink_to(tools.kubectl())

    def run(self, step: str) -> str:
        """Run the commands of a step, and return their output."""
        process = self.start(step)
        try:
            out, err = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self.end(process)
            out, err = process.communicate()
        assert process.returncode == 0, f"{step} ended with {process.returncode}: {out}{err}"
        return out

    def start(self, step: str) -> subprocess.Popen[str]:
        """Start the commands of a step, and return their process."""
        path = f"{self.folder / 'bin'}:{os.environ['PATH']}"
        config = {} if self.kubeconfig is None else {"KUBECONFIG": str(self.kubeconfig)}
        return subprocess.Popen(
            ["bash", "-c", _SCRIPT.format(commands=self._here(self._steps[step]))],
            cwd=self.folder,
            env=os.environ | {"PATH": path} | config,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    @staticmethod
    def end(process: subprocess.Popen[str]) -> None:
        """Kill the commands of a step, if they still run."""
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

    def _here(self, text: str) -> str:
        for before, after in self.texts.items():
            text = re.sub(before, after, text)
        return text


def steps(page: Path) -> dict[str, str]:
    """Return the scripts of a page by name."""
    return {name: text for kind, name, _, text in _blocks(page) if kind == "step"}


def files(page: Path) -> dict[str, str]:
    """Return the files of a page by name."""
    return {name: text for kind, name, _, text in _blocks(page) if kind == "file"}


def unnamed(page: Path) -> list[str]:
    """Return the blocks of a page that are neither a file nor a step."""
    return [text for kind, _, _, text in _blocks(page) if not kind]


def _blocks(page: Path) -> list[tuple[str, str, str, str]]:
    return _BLOCK.findall(page.read_text(encoding="utf-8"))
