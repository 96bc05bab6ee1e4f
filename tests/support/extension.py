"""The C extension of a source, compiled and loaded for a test."""

import runpy
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from shutil import copyfile
from types import SimpleNamespace

from sluice.core.events import framing

_ROOT = Path(__file__).parents[2]

compiler = SimpleNamespace(**runpy.run_path(str(_ROOT / "docker/compile.py")))
"""The definitions of docker/compile.py."""


def source_in(package: Path) -> Path:
    """Copy the extension's source to its place in a package, and return the copy."""
    source: Path = package / compiler.SOURCE
    source.parent.mkdir(parents=True)
    copyfile(_ROOT / "operator/sluice" / compiler.SOURCE, source)
    return source


def walk_in_c(folder: Path) -> framing.Walk:
    """Compile the present source in an empty folder, and return its walk.

    Without a C compiler, return the walk in Python.
    """
    binary = source_in(folder).with_suffix(".abi3.so")
    try:
        compiler.compile_extension(folder)
    except compiler.NoCompiler:
        return framing.walk_in_python
    loader = ExtensionFileLoader("_framing", str(binary))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    walk: framing.Walk = module.walk
    return walk
