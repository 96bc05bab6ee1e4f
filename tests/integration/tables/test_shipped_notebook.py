"""The notebook in examples/, executed by Jupyter's own client in a kernel, on a real store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import nbformat
from nbclient import NotebookClient

from support.store.clicks import KEYS

if TYPE_CHECKING:
    import pytest

    from localstore import Standalone
    from support.store.clicks import Clicks

NOTEBOOK = Path(__file__).parents[3] / "examples" / "notebook.ipynb"
ROUNDS = 25
SECONDS = 60
TOLD = """\
import json
print(json.dumps({"means": means.rows(), "largest": largest.rows(), "later": len(later)}))
print(json.dumps({name: places[name].tolist() for name in ("_segment", "_offset", "_pointer")}))
"""
"""A cell that tells the notebook's results to the test."""


def test_the_notebook_runs_and_its_tables_are_exact(
    clicks: Clicks, standalone: Standalone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each cell runs without an error. Means, maxima and places are those of the written events.

    The stream was scaled. The notebook has no outputs of an earlier run.
    """
    clicks.write(ROUNDS)
    clicks.split()
    clicks.write(ROUNDS)
    monkeypatch.setenv("SLUICE_STORE", standalone.controller_uri)
    monkeypatch.setenv("SLUICE_STREAM", str(clicks.name))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells)
    notebook.cells.append(nbformat.v4.new_code_cell(TOLD))
    NotebookClient(notebook, timeout=SECONDS, kernel_name="python3").execute()
    told, placed = map(json.loads, notebook.cells[-1].outputs[0]["text"].splitlines())
    each = 2 * ROUNDS
    keys = sorted(f"key-{number}" for number in range(KEYS))
    assert told == {
        "means": [[key, each, (each - 1) / 8] for key in keys],
        "largest": [[key, (each - 1) / 4] for key in keys],
        "later": 0,
    }
    places = set(zip(placed["_segment"], placed["_offset"], strict=True))
    assert len(places) == len(set(placed["_pointer"])) == each * KEYS
