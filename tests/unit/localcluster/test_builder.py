from pathlib import Path

import pytest

from localcluster.images.builder import KEPT, Builder
from localcluster.images.image import Image
from support.command.programs import PutProgram

# It keeps an image as a file named by its reference, with a new id for each build.
BUILDAH = """
PATH=/usr/bin:/bin
images="{folder}"
for word; do
  case $word in
    --iidfile=*) id_file=${{word#*=}} ;;
    --tag=*) tag=${{word#*=}} ;;
  esac
  last=$word
done
key() {{ echo "$1" | tr / _; }}
echo "$*" >>"$images/log"
case " $* " in
  *" inspect "*) cat "$images/$(key "$last")" ;;
  *" build "*)
    count=$(grep -c ' build ' "$images/log")
    printf 'sha256:%012d' "$count" >"$id_file"
    [ -z "$tag" ] || printf '%012d' "$count" >"$images/$(key "$tag")" ;;
  *" tag "*) printf %s "${{last##*:}}" >"$images/$(key "$last")" ;;
  *" rmi "*) rm "$images/$(key "$last")" ;;
esac
"""


class Bench:
    """A builder with a simulated buildah, and the source of an image."""

    def __init__(self, folder: Path) -> None:
        self.builder = Builder(folder / "storage")
        self.images = folder / "images"
        self.context = folder / "context"
        self.context.mkdir()
        (self.context / "Dockerfile").write_text("FROM scratch\n")

    def build(self, name: str, content: str = "") -> str:
        """Build an image from this content, and return its reference."""
        (self.context / "content").write_text(content)
        return self.builder.build(Image(name, self.context), lambda _: None).reference

    @property
    def builds(self) -> int:
        """The number of buildah's builds."""
        return (self.images / "log").read_text().count(" build ")


@pytest.fixture
def bench(tmp_path: Path, program: PutProgram) -> Bench:
    """Return the builder, with the simulated buildah on PATH."""
    bench = Bench(tmp_path)
    bench.images.mkdir()
    program("buildah", BUILDAH.format(folder=bench.images))
    return bench


def test_nothing_is_built_where_nothing_changed(bench: Bench) -> None:
    """The same inputs are built once."""
    assert bench.build("localhost/it:dev") == "localhost/it:dev"
    assert bench.build("localhost/it:dev") == "localhost/it:dev"
    assert bench.builds == 1


def test_what_changed_is_built_again(bench: Bench) -> None:
    """Other content causes another build under the same name."""
    bench.build("localhost/it:dev", "1")
    bench.build("localhost/it:dev", "2")
    assert bench.builds == 2


def test_an_image_that_went_away_is_built_again(bench: Bench) -> None:
    """The record of a build counts only while the image exists."""
    bench.build("localhost/it:dev")
    (bench.images / "localhost_it:dev").unlink()
    bench.build("localhost/it:dev")
    assert bench.builds == 2


def test_a_name_without_tag_gets_one_from_the_content(bench: Bench) -> None:
    """The tag is the image's id, so such a reference never changes its meaning."""
    first = bench.build("localhost/it", "1")
    second = bench.build("localhost/it", "2")
    assert first == "localhost/it:000000000001"
    assert second == "localhost/it:000000000002"
    assert bench.build("localhost/it", "2") == second


def test_old_builds_do_not_fill_the_disk(bench: Bench) -> None:
    """For a name without a tag, the latest build and a few earlier ones are kept."""
    for number in range(KEPT + 3):
        bench.build("localhost/it", str(number))
    kept = sorted(path.name for path in bench.images.glob("localhost_it:*"))
    assert kept == [f"localhost_it:{number:012}" for number in range(3, KEPT + 4)]


def test_a_failed_build_is_tried_again(bench: Bench, program: PutProgram) -> None:
    """Only a successful build is recorded."""
    program("buildah", "exit 1")
    with pytest.raises(Exception, match="failed"):
        bench.build("localhost/it:dev")
    program("buildah", BUILDAH.format(folder=bench.images))
    assert bench.build("localhost/it:dev") == "localhost/it:dev"


def test_an_image_is_built_on_a_stage_of_another(bench: Bench) -> None:
    """The other image is built first, up to its stage, and becomes the base."""
    beneath = Image("localhost/java", bench.context, stage="runtime")
    image = Image("localhost/it:dev", bench.context, beneath=beneath)
    bench.builder.build(image, lambda _: None)
    log = (bench.images / "log").read_text().splitlines()
    first, second = (line for line in log if " build " in line)
    assert "--target=runtime" in first
    assert "--build-arg=BASE_IMAGE=localhost/java:000000000001" in second
