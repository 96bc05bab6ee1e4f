"""The image's installer of Python's packages, with a pip and a uv that tell how they are run."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

INSTALL = Path(__file__).parents[3] / "docker" / "install"
VARIABLES = ("UV_DEFAULT_INDEX", "UV_INDEX", "UV_INSECURE_HOST", "SSL_CERT_FILE")


def installed(folder: Path, settings: str) -> tuple[dict[str, str], list[str]]:
    """Return uv's variables and arguments when packages are installed.

    Args:
        folder: a folder of the test.
        settings: what `pip config list` prints.
    """
    tools = folder / "tools"
    tools.mkdir()
    shutil.copy(INSTALL, tools)
    (folder / "settings").write_text(settings)
    (folder / "packages").mkdir()
    (folder / "packages" / ".lock").touch()
    for name, body in (
        ("pip", f'[ "$*" = "config list" ] && cat {folder}/settings'),
        ("uv", f'env >{folder}/env\nprintf "%s\\n" "$@" >{folder}/arguments'),
    ):
        program = tools / name
        program.write_text(f"#!/bin/sh\n{body}\n")
        program.chmod(0o755)
    command: list[str | Path] = [tools / "install", "wanted.txt", folder / "packages"]
    subprocess.run(command, check=True, env={"PATH": os.defpath}, timeout=60)
    assert list((folder / "packages").iterdir()) == []
    seen = dict(line.split("=", 1) for line in (folder / "env").read_text().splitlines())
    assert seen["DIST_EXTRA_CONFIG"] == str(tools / "wheel.cfg")
    found = {name: seen[name] for name in VARIABLES if name in seen}
    return found, (folder / "arguments").read_text().splitlines()


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("", {}),
        ("global.timeout='180'\n", {}),
        ("global.cert='/run/bundle.crt'\n", {"SSL_CERT_FILE": "/run/bundle.crt"}),
        (
            """\
global.index-url='https://a.example/simple'
install.trusted-host='a.example'
:env:.index-url='https://b.example/simple'
""",
            {"UV_DEFAULT_INDEX": "https://b.example/simple", "UV_INSECURE_HOST": "a.example"},
        ),
        (
            r"global.extra-index-url='https://a.example/x\nhttps://b.example/y'",
            {"UV_INDEX": "https://a.example/x https://b.example/y"},
        ),
    ],
    ids=["nothing", "a setting of pip alone", "certificates", "an index", "several indexes"],
)
def test_pip_s_settings_are_uv_s(tmp_path: Path, settings: str, expected: dict[str, str]) -> None:
    """The machine's index and certificates are used, and a setting that comes later counts."""
    found, _ = installed(tmp_path, settings)
    assert found == expected


def test_only_what_the_lock_names_is_installed(tmp_path: Path) -> None:
    """Each package needs its hash, and brings no other package with it."""
    _, words = installed(tmp_path, "")
    assert {"--require-hashes", "--no-deps", "--no-config"} <= set(words)
    assert words[words.index("--target") + 1] == str(tmp_path / "packages")
    assert words[-2:] == ["-r", "wanted.txt"]
