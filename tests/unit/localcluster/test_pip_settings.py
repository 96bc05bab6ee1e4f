from configparser import ConfigParser
from pathlib import Path

from localcluster.images.pip_settings import (
    MOUNTED_BUNDLE,
    bundle,
    merged_settings,
    mounted_settings,
)


def test_the_environment_wins_over_files(tmp_path: Path) -> None:
    """Settings have pip's own precedence. Only settings about the way to the index are kept."""
    system, user = tmp_path / "system", tmp_path / "user"
    system.write_text("[global]\nindex-url = one\ntimeout = 5\nuser = yes\n")
    user.write_text("[install]\nindex-url = two\n")
    settings = merged_settings(
        [system, user, tmp_path / "none"], {"PIP_TIMEOUT": "60", "PIP_FIND_LINKS": "/wheels"}
    )
    assert settings == {"index-url": "two", "timeout": "60"}


def test_the_file_that_the_environment_names_counts(tmp_path: Path) -> None:
    """The file in PIP_CONFIG_FILE is read last."""
    named = tmp_path / "named"
    named.write_text("[global]\nproxy = p\n")
    assert merged_settings([], {"PIP_CONFIG_FILE": str(named)}) == {"proxy": "p"}


def test_a_build_sees_the_settings_with_its_own_path_of_the_bundle() -> None:
    """Several indexes survive, and the bundle has the path at which it is mounted."""
    settings = {"extra-index-url": "\none\ntwo", "cert": "/home/me/bundle"}
    parser = ConfigParser(interpolation=None)
    parser.read_string(mounted_settings(settings))
    assert parser["global"]["extra-index-url"].split() == ["one", "two"]
    assert parser["global"]["cert"] == MOUNTED_BUNDLE
    assert bundle(settings) == Path("/home/me/bundle")
