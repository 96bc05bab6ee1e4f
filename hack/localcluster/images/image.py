"""Descriptions of images."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from localcluster.commands import Say


@dataclass(frozen=True)
class Image:
    """An image to build.

    Attributes:
        name: the image's name. Without a tag it gets one from its content, so that a reference
            always means the same content.
        context: folder that the build sees.
        dockerfile: the Dockerfile; the context's own if left out.
        build_args: values for the ARGs of the Dockerfile.
        settled: whether the name determines the content, so that an existing image of this name
            is not built again.
        stage: stage of the Dockerfile that is built; the last one if left out.
        beneath: image that our own builder builds this one on, instead of Debian's base.
    """

    name: str
    context: Path
    dockerfile: Path | None = None
    build_args: Mapping[str, str] = field(default_factory=dict)
    settled: bool = False
    stage: str | None = None
    beneath: "Image | None" = None

    @property
    def tagged(self) -> bool:
        """Tell whether the name has a tag."""
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
    """A cluster's source of images."""

    def provide(self, image: Image, say: Say) -> str:
        """Make an image available to pods.

        Args:
            image: description of the image.
            say: callback for progress messages.

        Returns:
            The reference for pods.

        Raises:
            LocalClusterError: the image cannot be built or brought to the cluster.
        """
        ...
