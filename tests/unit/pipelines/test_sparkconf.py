from pathlib import Path

import pytest

from sluice.errors import InvalidSpec
from sluice.pipelines.spark import sparkconf
from sluice.pipelines.spark.sparkconf import Executors, Pod, Template

MIB = 1 << 20
POD = Pod("orders-1-x7k2p", "0f9b2c44-aaaa-bbbb-cccc-1234567890ab", "10.0.0.7", "team-a")
TEMPLATE = Template(file=Path("/run/executor.yaml"), image="sluice:1", cpu="500m", memory=1 << 30)


def executors(*, count: int = 2, cores: int = 1, heap: int = 512 * MIB) -> Executors:
    """Make executors of a profile."""
    return Executors(count=count, cores=cores, heap=heap, template=TEMPLATE, pod=POD)


def test_a_task_is_tried_again_without_executors() -> None:
    """Plain local[N] would fail a round at the first broken task."""
    assert sparkconf.local(3)["spark.master"] == "local[3,4]"


def test_nothing_listens_beyond_the_pod_without_executors() -> None:
    """Its driver serves this machine only, and has no user interface."""
    configuration = sparkconf.local(2)
    assert configuration["spark.driver.bindAddress"] == "127.0.0.1"
    assert configuration["spark.ui.enabled"] == "false"


def test_the_driver_needs_no_right_but_to_pods() -> None:
    """Spark's use of ConfigMaps, Services and volume claims is off."""
    configuration = sparkconf.kubernetes(executors())
    assert configuration["spark.kubernetes.executor.disableConfigMap"] == "true"
    assert configuration["spark.kubernetes.driver.service.deleteOnTermination"] == "false"
    assert configuration["spark.kubernetes.driver.ownPersistentVolumeClaim"] == "false"
    assert configuration["spark.kubernetes.driver.reusePersistentVolumeClaim"] == "false"


def test_executors_belong_to_the_driver_and_must_prove_who_they_are() -> None:
    """Its pod owns them. They reach it on known ports, and know its secret."""
    configuration = sparkconf.kubernetes(executors())
    assert configuration["spark.kubernetes.driver.pod.name"] == POD.name
    assert configuration["spark.kubernetes.namespace"] == "team-a"
    assert configuration["spark.driver.host"] == configuration["spark.driver.bindAddress"] == POD.ip
    assert configuration["spark.driver.port"] == "7078"
    assert configuration["spark.blockManager.port"] == "7079"
    assert configuration["spark.authenticate"] == "true"
    assert configuration["spark.network.crypto.enabled"] == "true"


def test_the_template_says_how_large_executors_are() -> None:
    """Spark overwrites the template's resources, so it gets the same numbers."""
    configuration = sparkconf.kubernetes(executors(count=3, cores=2))
    assert configuration["spark.executor.instances"] == "3"
    assert configuration["spark.executor.cores"] == "2"
    assert configuration["spark.executor.memory"] == "512m"
    assert configuration["spark.executor.memoryOverhead"] == "512m"
    assert configuration["spark.kubernetes.executor.request.cores"] == "500m"
    assert "spark.kubernetes.executor.limit.cores" not in configuration
    assert configuration["spark.kubernetes.container.image"] == "sluice:1"


def test_slots_are_executors_times_cores() -> None:
    """As many tasks run at once as there are cores in all executors."""
    assert executors(count=3, cores=2).slots == 6


def test_executors_that_leave_python_no_memory_are_refused() -> None:
    """The error names the field, before any pod is made."""
    with pytest.raises(InvalidSpec, match="1024 MiB, of which the JVM takes 900 MiB") as caught:
        sparkconf.kubernetes(executors(heap=900 * MIB))
    assert caught.value.field == "spec.runtime.executor.resources.memory"


@pytest.mark.parametrize(
    "key",
    [
        "spark.master",
        "spark.authenticate",
        "spark.authenticate.secret",
        "spark.kubernetes.namespace",
        "spark.kubernetes.executor.podTemplateFile",
        "spark.kubernetes.driver.pod.name",
        "spark.driver.port",
        "java.home",
    ],
)
def test_what_a_copy_depends_on_cannot_be_set_from_outside(key: str) -> None:
    """A profile may tune Spark, but not change its function."""
    for configure in (
        lambda e: sparkconf.local(1, e),
        lambda e: sparkconf.kubernetes(executors(), e),
    ):
        with pytest.raises(InvalidSpec, match=key):
            configure({key: "x"})


def test_other_settings_are_the_profiles_own() -> None:
    """A setting that Sluice does not need is kept, and precedes a default."""
    extra = {"spark.task.maxFailures": "9", "spark.network.timeout": "60s"}
    configuration = sparkconf.kubernetes(executors(), extra)
    assert configuration.items() >= extra.items()
    assert sparkconf.local(1, extra).items() >= extra.items()


def test_each_attempt_names_its_executors_differently() -> None:
    """Executors of an ending attempt never conflict with those of the next one."""
    again = Pod(POD.name, "1e000000-0000", POD.ip, POD.namespace)
    assert sparkconf.prefix(POD) == "orders-1-x7k2p-0f9b2c44"
    assert sparkconf.prefix(again) == "orders-1-x7k2p-1e000000"


def test_a_long_name_is_cut_to_what_spark_takes() -> None:
    """Spark takes 47 characters, and a cut never leaves two hyphens in a row."""
    long = Pod("a" * 30 + "-" + "b" * 30, "0f9b2c44-aaaa", "10.0.0.7", "team-a")
    assert sparkconf.prefix(long) == "a" * 30 + "-0f9b2c44"
    assert len(sparkconf.prefix(Pod("a" * 63, "0f9b2c44", "", ""))) == 40
