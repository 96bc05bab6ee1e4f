from pathlib import Path

from localcluster.node.leftovers import mount_points


def test_mount_points_may_have_spaces() -> None:
    """The kernel writes a space as an octal number."""
    mounts = "tmpfs /a tmpfs rw 0 0\noverlay /b\\040c overlay rw 0 0\n"
    assert mount_points(mounts) == [Path("/a"), Path("/b c")]
