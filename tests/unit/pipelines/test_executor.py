from pathlib import Path

import pytest

from sluice.errors import InfrastructureError
from sluice.pipelines.spark import java
from sluice.pipelines.spark.executor import MAIN, arguments

ENVIRONMENT = {
    "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@10.0.0.7:7078",
    "SPARK_EXECUTOR_ID": "3",
    "SPARK_EXECUTOR_CORES": "2",
    "SPARK_EXECUTOR_MEMORY": "512m",
    "SPARK_APPLICATION_ID": "spark-1",
    "SPARK_EXECUTOR_POD_IP": "10.0.0.9",
    "SPARK_EXECUTOR_POD_NAME": "orders-exec-3",
    "SPARK_RESOURCE_PROFILE_ID": "0",
    "SPARK_JAVA_OPT_10": "-Dspark.driver.port=7078",
    "SPARK_JAVA_OPT_2": "-Dspark.authenticate=true",
    "SPARK_JAVA_OPT_1": "--add-modules=jdk.incubator.vector",
    "_SPARK_AUTH_SECRET": "hunter2",
}


def test_spark_says_by_variables_what_the_executor_is() -> None:
    """Each variable of Spark becomes the argument that its executor needs."""
    given = arguments(ENVIRONMENT)
    words = given[given.index(MAIN) + 1 :]
    assert dict(zip(words[::2], words[1::2], strict=True)) == {
        "--driver-url": "spark://CoarseGrainedScheduler@10.0.0.7:7078",
        "--executor-id": "3",
        "--cores": "2",
        "--app-id": "spark-1",
        "--hostname": "10.0.0.9",
        "--resourceProfileId": "0",
        "--podName": "orders-exec-3",
    }
    assert "-Xmx512m" in given


def test_the_drivers_settings_come_in_its_order() -> None:
    """They are numbered, with 10 after 2. Java's modules do not come from the driver."""
    given = arguments(ENVIRONMENT)
    settings = [word for word in given if word.startswith("-Dspark.")]
    assert settings == ["-Dspark.authenticate=true", "-Dspark.driver.port=7078"]
    assert "--add-modules=jdk.incubator.vector" not in given


def test_the_secret_is_no_argument() -> None:
    """Every user on the machine can see arguments."""
    assert not any("hunter2" in word for word in arguments(ENVIRONMENT))


def test_a_machine_without_java_is_told_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The error has the searched places, and the remedy the needed version."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(InfrastructureError, match="JAVA_HOME=") as caught:
        java.java()
    assert "17" in caught.value.remedy


def test_jars_are_named_in_a_fixed_order() -> None:
    """An archive of classes fits one class path only, and folders have no order."""
    given = java.options("1g", {})
    jars = [Path(jar) for jar in given[given.index("-cp") + 1].split(":")]
    assert jars == sorted(jars, key=lambda jar: (-jar.stat().st_size, jar))
    assert any(jar.name.startswith("spark-core_") for jar in jars)
