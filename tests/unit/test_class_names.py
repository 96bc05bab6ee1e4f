"""The names of classes."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

OPERATOR = Path(__file__).parents[2] / "operator"


def test_each_name_of_a_class_means_one_thing() -> None:
    """No two modules of Sluice define classes of the same name."""
    modules = defaultdict(list)
    for path in sorted(OPERATOR.rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                modules[node.name].append(str(path.relative_to(OPERATOR)))
    assert len(modules) > 500  # else it looks in the wrong folder
    assert {name: paths for name, paths in modules.items() if len(paths) > 1} == {}
