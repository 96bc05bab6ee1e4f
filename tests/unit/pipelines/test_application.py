import pytest

from sluice.pipelines.spark.lost import first_line

PYTHON = """An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 failed 4 times
Caused by: org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "/opt/sluice/worker.py", line 1, in main
    process()
    ^^^^^^^^^
MemoryError: no room for a block

\tat org.apache.spark.api.python.BasePythonRunner.run(PythonRunner.scala:1)
"""

CAUSES = """An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.
: org.apache.spark.SparkException: External scheduler cannot be instantiated
\tat org.apache.spark.SparkContext.createTaskScheduler(SparkContext.scala:1)
Caused by: java.lang.reflect.InvocationTargetException
\tat java.base/java.lang.reflect.Constructor.newInstance(Constructor.java:1)
Caused by: io.fabric8.kubernetes.client.KubernetesClientException: pods is forbidden
\t... 3 more
"""


class GoneError(Exception):
    """An error whose text is in a JVM that has ended, as for Py4J's errors."""

    def __str__(self) -> str:
        """Fail, as the JVM has ended."""
        raise ConnectionRefusedError


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (RuntimeError(PYTHON), "MemoryError: no room for a block"),
        (
            RuntimeError(CAUSES),
            "io.fabric8.kubernetes.client.KubernetesClientException: pods is forbidden",
        ),
        (
            RuntimeError("An error occurred.\n: java.lang.IllegalStateException: stopped\n\tat x"),
            "java.lang.IllegalStateException: stopped",
        ),
        (RuntimeError("plain"), "plain"),
        (RuntimeError("\n"), "RuntimeError"),
        (GoneError(), "GoneError"),
        (RuntimeError("x" * 9000), "x" * 500),
    ],
    ids=["python", "causes", "java", "plain", "empty", "gone", "long"],
)
def test_one_line_says_what_happened(error: Exception, line: str) -> None:
    """It is the one relevant line of the stack traces of two languages."""
    assert first_line(error) == line
