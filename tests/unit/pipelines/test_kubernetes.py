from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sluice.errors import InvalidSpec, WaitingForExecutors
from sluice.pipelines.spark import kubernetes
from sluice.pipelines.spark.kubernetes import Crew, own_pod, read_template
from sluice.pipelines.spark.sparkconf import Executors, Pod, Template

MIB = 1 << 20
ENVIRONMENT = {"POD_NAME": "d", "POD_UID": "u", "POD_IP": "10.0.0.7", "POD_NAMESPACE": "team-a"}


class Application:
    """A Spark context whose executors come and go as a test decides."""

    def __init__(self, *counts: int) -> None:
        self._counts = list(counts)

    def _ids(self) -> SimpleNamespace:
        count = self._counts.pop(0) if len(self._counts) > 1 else self._counts[0]
        return SimpleNamespace(size=lambda: count)

    @property
    def _jsc(self) -> Any:
        return SimpleNamespace(sc=lambda: SimpleNamespace(getExecutorIds=self._ids))


def crew(application: Any, *, count: int = 2, cores: int = 1, seconds: float = 0.2) -> Crew:
    """Make the crew of an application that asked for so many executors."""
    template = Template(file=Path("t.yaml"), image="i")
    pod = Pod("d", "u", "10.0.0.7", "team-a")
    executors = Executors(count=count, cores=cores, heap=512 * MIB, template=template, pod=pod)
    return Crew(application, executors, seconds)


def test_a_driver_waits_for_all_its_executors() -> None:
    """The first round has every slot."""
    ready = crew(Application(0, 1, 1, 2), cores=2, seconds=60)
    ready.wait()
    assert ready.slots() == 4


def test_without_any_executor_in_time_the_copy_gives_up() -> None:
    """The error has the category Scheduling and the length of the wait, and is retryable."""
    with pytest.raises(WaitingForExecutors, match="none of 2 executors was there") as caught:
        crew(Application(0)).wait()
    assert caught.value.retryable
    assert (caught.value.reason, caught.value.category) == ("WaitingForExecutors", "Scheduling")


def test_with_some_executors_in_time_the_copy_begins() -> None:
    """A copy with fewer executors is slower, but better than none."""
    ready = crew(Application(1), count=4, cores=2)
    ready.wait()
    assert ready.slots() == 2


def test_slots_follow_the_executors_that_are_there() -> None:
    """A lost executor is no slot until it is replaced, and a round has at least one slot."""
    ready = crew(Application(2, 1, 0, 2), cores=3)
    assert [ready.slots() for _ in range(4)] == [6, 3, 3, 6]


def test_waiting_ends_when_the_driver_is_told_to_stop() -> None:
    """The check's exception ends the wait."""

    def check() -> None:
        raise InterruptedError

    template = Template(file=Path("t.yaml"), image="i")
    executors = Executors(count=1, heap=1, template=template, pod=Pod("d", "u", "", ""))
    with pytest.raises(InterruptedError):
        Crew(Application(0), executors, 60, check=check).wait()  # type: ignore[arg-type]


def test_tasks_that_nothing_can_run_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """All executors must be gone for long: the tasks survive a short absence."""
    now = 0.0
    monkeypatch.setattr(kubernetes, "time", SimpleNamespace(monotonic=lambda: now))
    watched = crew(Application(1, 0, 0, 1, *([0] * 99)), seconds=10)
    for now in range(30):  # noqa: B007 - the time
        try:
            watched.check()
        except WaitingForExecutors:
            break
    assert now == 15  # 10 s and a look after the last executor, which was there at 4


def test_time_without_tasks_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """No task has missed an executor meanwhile."""
    now = 0.0
    monkeypatch.setattr(kubernetes, "time", SimpleNamespace(monotonic=lambda: now))
    watched = crew(Application(0), seconds=10)
    for now in (0, 100, 200):  # noqa: B007 - the time
        watched.check()


def test_the_drivers_pod_comes_from_the_environment() -> None:
    """The downward API identifies the driver."""
    assert own_pod(ENVIRONMENT) == Pod("d", "u", "10.0.0.7", "team-a")


def test_what_is_missing_of_it_is_named() -> None:
    """One error names all missing variables."""
    with pytest.raises(InvalidSpec, match="POD_UID, POD_IP"):
        own_pod({**ENVIRONMENT, "POD_UID": "", "POD_IP": ""})


def test_the_template_is_read_for_what_spark_would_overwrite(tmp_path: Path) -> None:
    """These are image, pull policy, processors and memory of the first container. Limits count."""
    path = tmp_path / "executor.yaml"
    path.write_text(
        "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n"
        "  - name: executor\n    image: sluice:1\n    imagePullPolicy: Never\n"
        "    resources: {requests: {cpu: 2, memory: 1Gi}, limits: {memory: 2Gi, cpu: 3500m}}\n"
        "  - {name: sidecar, image: other}\n"
    )
    assert read_template(path) == Template(
        file=path, image="sluice:1", pull_policy="Never", cpu="2", cpu_limit="3500m", memory=2 << 30
    )


def test_a_template_may_leave_resources_open(tmp_path: Path) -> None:
    """Spark chooses then."""
    path = tmp_path / "executor.yaml"
    path.write_text("spec: {containers: [{image: i}]}")
    assert read_template(path) == Template(file=path, image="i")


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "a: [",
        "spec: {containers: []}",
        "spec: {containers: [{name: executor}]}",
        "spec: {containers: [{image: i, resources: {limits: {memory: much}}}]}",
    ],
)
def test_a_damaged_template_is_named(tmp_path: Path, text: str | None) -> None:
    """The error names the file."""
    path = tmp_path / "executor.yaml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(InvalidSpec, match=r"executor\.yaml is no template"):
        read_template(path)
