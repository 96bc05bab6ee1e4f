"""The image with Pravega and its Java client."""

import shutil
from pathlib import Path

from localcluster.files import link_or_copy
from localcluster.images.image import Image
from localcluster.release import ROOT
from localstore.cache import cache_root, content_key, make_once
from localstore.foreign_jvm import compiled_client
from localstore.jars import PRAVEGA_VERSION, ensure_jars
from localstore.java import LOGBACK, java_command

_IMAGE = Path(__file__).parents[2] / "cluster" / "images" / "pravega"
_DOCKERFILE = _IMAGE / "Dockerfile"
_LAUNCHER = _IMAGE / "pravega-standalone"
_INSTALLED = Path("/opt/pravega")


def store_image() -> Image:
    """Return the image's description, and gather the inputs of its build.

    Raises:
        LocalStoreError: the jars or the client are not available.
    """
    jars, client = ensure_jars(), compiled_client()
    key = content_key([_DOCKERFILE, _LAUNCHER, LOGBACK, *jars.iterdir(), *client.iterdir()])

    def gather(context: Path) -> None:
        shutil.copytree(jars, context / "jars", copy_function=link_or_copy)
        shutil.copytree(client, context / "foreign", copy_function=link_or_copy)
        shutil.copy(_LAUNCHER, context)
        shutil.copy(LOGBACK, context / "logback.xml")

    context = make_once(cache_root() / f"pravega-image-{key}", gather)
    return Image(
        f"localhost/pravega:{PRAVEGA_VERSION}-{key}",
        context=context,
        dockerfile=_DOCKERFILE,
        settled=True,
        # It has Java, as Sluice's image has. So a cluster keeps one Java for both.
        beneath=Image("localhost/java", ROOT, stage="runtime"),
    )


def image_command(
    main: str,
    *,
    heap: str,
    direct_memory: str = "256m",
    properties: dict[str, object] | None = None,
    arguments: tuple[str, ...] = (),
    mended: bool = False,
) -> list[str]:
    """Return the command line of a JVM in the image; see `java_command`."""
    return java_command(
        main=main,
        classpath=f"{_INSTALLED}/foreign:{_INSTALLED}/lib/*",
        heap=heap,
        direct_memory=direct_memory,
        properties=properties,
        arguments=arguments,
        mended=mended,
        java="java",
        logback=_INSTALLED / "logback.xml",
    )
