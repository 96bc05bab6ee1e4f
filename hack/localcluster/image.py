"""What an image is made of."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from localcluster.commands import Say


@dataclass(frozen=True)
class Image:
    """An image to build.

    Attributes:
        name: Its name. Without a tag it gets one from its content, so that a reference never
            changes its meaning.
        context: The folder that the build sees.
        dockerfile: How it is built; the context's own when left out.
        build_args: Values for the ARGs of the Dockerfile.
        settled: Whether the name says all about the content, so that an image of this name need
            not be built again.
    """

    name: str
    context: Path
    dockerfile: Path | None = None
    build_args: Mapping[str, str] = field(default_factory=dict)
    settled: bool = False

    @property
    def tagged(self) -> bool:
        """Whether the name has a tag."""
        return ":" in self.name.rpartition("/")[2]

    @property
    def repository(self) -> str:
        """The name without its tag."""
        return self.name.rpartition(":")[0] if self.tagged else self.name

    @property
    def recipe(self) -> Path:
        """The Dockerfile."""
        return self.dockerfile or self.context / "Dockerfile"


class ImageSource(Protocol):
    """Where a cluster gets its images from."""

    def provide(self, image: Image, say: Say) -> str:
        """Makes pods able to run an image.

        Args:
            image: What it is made of.
            say: Told what takes long.

        Returns:
            The reference for pods.

        Raises:
            LocalClusterError: It cannot be built or brought to the cluster.
        """
        ...
