import sysconfig
from pathlib import Path

import pytest

from support.extension import compiler, source_in

CC = """\
#!/bin/sh
for word; do
  case $word in -DFINGERPRINT=*) made=$word ;; esac
done
echo "$made" >"$word"
"""


@pytest.fixture
def cc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a stand-in for the C compiler, with a header of Python."""
    program = tmp_path / "cc"
    program.write_text(CC)
    program.chmod(0o755)
    (tmp_path / "Python.h").touch()
    monkeypatch.setattr(sysconfig, "get_config_var", lambda _: f"{program} -shared")
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path))
    return program


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Return the extension's source in a package."""
    return source_in(tmp_path / "package")


def test_a_source_is_compiled_once(cc: Path, source: Path, tmp_path: Path) -> None:
    """An unchanged source is not compiled again. After a change it is."""
    package = tmp_path / "package"
    assert compiler.compile_extension(package)
    binary = source.with_suffix(".abi3.so")
    first = binary.read_bytes()
    program = cc.rename(tmp_path / "away")
    assert not compiler.compile_extension(package)
    assert binary.read_bytes() == first
    program.rename(cc)
    source.write_text("changed")
    assert compiler.compile_extension(package)
    assert binary.read_bytes() != first
    assert sorted(source.parent.iterdir()) == [binary, source]


@pytest.mark.parametrize("missing", ["cc", "Python.h"])
@pytest.mark.usefixtures("cc")
def test_without_a_compiler_no_binary_of_another_source_stays(
    source: Path, tmp_path: Path, missing: str
) -> None:
    """The error names the missing compiler or header, and the old binary is removed."""
    package = tmp_path / "package"
    compiler.compile_extension(package)
    source.write_text("changed")
    (tmp_path / missing).unlink()
    with pytest.raises(compiler.NoCompiler, match=rf"^no .*{missing}"):
        compiler.compile_extension(package)
    assert list(source.parent.iterdir()) == [source]
