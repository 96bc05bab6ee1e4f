"""This machine's settings of pip's index, for builds that run in an image."""

import os
from collections.abc import Iterable, Mapping
from configparser import ConfigParser
from pathlib import Path

# The path of the machine's certificate bundle in a build.
MOUNTED_BUNDLE = "/run/host-certificates.crt"

_SYSTEM_BUNDLE = Path("/etc/ssl/certs/ca-certificates.crt")

# Only the settings of the index; others may name paths that no image has.
_KEPT = (
    "index-url",
    "extra-index-url",
    "trusted-host",
    "proxy",
    "timeout",
    "default-timeout",
    "retries",
    "cert",
)


def host_settings() -> dict[str, str]:
    """Return this machine's own settings."""
    home = Path.home()
    config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    files = [
        Path("/etc/xdg/pip/pip.conf"),
        Path("/etc/pip.conf"),
        home / ".pip" / "pip.conf",
        config / "pip" / "pip.conf",
    ]
    return merged_settings(files, os.environ)


def merged_settings(files: Iterable[Path], environment: Mapping[str, str]) -> dict[str, str]:
    """Merge settings as pip does: later files win, and the environment wins over all.

    Args:
        files: pip's configuration files in ascending order of precedence.
        environment: environment variables.

    Returns:
        The settings of the index.
    """
    settings: dict[str, str] = {}
    named = environment.get("PIP_CONFIG_FILE")
    for file in [*files, *([Path(named)] if named else [])]:
        parser = ConfigParser(interpolation=None)
        parser.read(file)
        for section in ("global", "install"):
            if parser.has_section(section):
                settings.update(parser.items(section))
    for name, value in environment.items():
        if name.startswith("PIP_"):
            settings[name.removeprefix("PIP_").lower().replace("_", "-")] = value
    return {name: settings[name] for name in _KEPT if name in settings}


def bundle(settings: Mapping[str, str]) -> Path:
    """Return the bundle of certificates that pip trusts on this machine."""
    return Path(settings.get("cert", _SYSTEM_BUNDLE))


def mounted_settings(settings: Mapping[str, str]) -> str:
    """Return the text of the file that a build sees as /etc/pip.conf."""
    lines = ["[global]"]
    for name, value in {**settings, "cert": MOUNTED_BUNDLE}.items():
        indented = value.strip().replace("\n", "\n  ")  # each of several indexes is on its own line
        lines.append(f"{name} = {indented}")
    return "\n".join(lines) + "\n"
