import pytest

from localcluster import LocalClusterError
from localcluster.packages import archives, missing_packages
from support.command.programs import PutProgram

TARGETS = """\
Debian main http://one/debian/ bookworm
Debian main http://one/debian/ bookworm-updates
Debian contrib http://one/debian/ bookworm
Debian main http://two/security/ bookworm-security
Debian main http://one/debian/ trixie
Somebody main http://three/ bookworm
"""


def test_images_are_made_of_the_machines_own_archives(program: PutProgram) -> None:
    """Of apt's archives, the `main` parts of the wanted Debian release are used, with updates."""
    program("apt-get", f"printf %s '{TARGETS}'")
    assert [line.split("] ")[1] for line in archives("bookworm")] == [
        "http://one/debian/ bookworm main",
        "http://one/debian/ bookworm-updates main",
        "http://two/security/ bookworm-security main",
    ]


def test_another_debian_is_refused(program: PutProgram) -> None:
    """Without an archive of the release, the error names SLUICE_KUBECONFIG as the alternative."""
    program("apt-get", "true")
    with pytest.raises(LocalClusterError, match=r"no archive of Debian bookworm.*KUBECONFIG"):
        archives("bookworm")


def test_programs_that_are_there_need_no_package(program: PutProgram) -> None:
    """Only packages of missing programs are installed."""
    program("buildah", "true")
    missing = missing_packages()
    assert "buildah" not in missing
    assert "mmdebstrap" in missing
