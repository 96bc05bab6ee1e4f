"""The image of the examples' streaming application: Pravega's Java client and one class."""

import shutil
from pathlib import Path

from localcluster.commands import Say, watch
from localcluster.images.image import Image
from localcluster.progress import step
from localcluster.release import ROOT
from localstore.cache import cache_root, content_key, make_once

_SOURCE = ROOT / "examples" / "wordcount"
_BUILT = shutil.ignore_patterns("target")


def wordcount_image(say: Say = print) -> Image:
    """Return the image's description, and package its content with Maven, once for each source.

    Args:
        say: callback for progress messages.

    Raises:
        LocalClusterError: Maven is missing, or failed.
    """
    files = [_SOURCE / "pom.xml", _SOURCE / "Dockerfile", *_SOURCE.glob("src/*.java")]
    key = content_key(files)

    def package(context: Path) -> None:
        shutil.copytree(_SOURCE, context, ignore=_BUILT, dirs_exist_ok=True)
        maven = ["mvn", "--batch-mode", "--quiet", f"--file={context / 'pom.xml'}", "package"]
        with step(say, "packaging the word counter with Maven"):
            watch(maven, sign=lambda _: "still packaging", say=say)

    context = make_once(cache_root() / f"wordcount-{key}", package)
    return Image(f"localhost/wordcount:{key}", context=context, settled=True)
