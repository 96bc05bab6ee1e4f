"""How pip reaches its index on this machine, for builds that run in an image."""

import os
from collections.abc import Iterable, Mapping
from configparser import ConfigParser
from pathlib import Path

# Where the machine's certificate bundle is shown to a build.
MOUNTED_BUNDLE = "/run/host-certificates.crt"

_SYSTEM_BUNDLE = Path("/etc/ssl/certs/ca-certificates.crt")

# Settings that say how the index is reached; others may name paths that no image has.
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
    """Reads this machine's own settings."""
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
    """Puts settings together as pip does: later files win, the environment wins over all.

    Args:
        files: pip's configuration files, those of least weight first.
        environment: Variables.

    Returns:
        The settings that say how the index is reached.
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
    """Gives the bundle of certificates that pip trusts on this machine."""
    return Path(settings.get("cert", _SYSTEM_BUNDLE))


def mounted_settings(settings: Mapping[str, str]) -> str:
    """Writes the file that a build sees as /etc/pip.conf."""
    lines = ["[global]"]
    for name, value in {**settings, "cert": MOUNTED_BUNDLE}.items():
        indented = value.strip().replace("\n", "\n  ")  # several indexes stand on a line each
        lines.append(f"{name} = {indented}")
    return "\n".join(lines) + "\n"
