import re
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from sluice import __version__, cli
from sluice.commands.cluster.shared import OVER
from sluice.commands.shared import exit_code
from sluice.core.events import framing
from sluice.core.values.trouble import Trouble
from sluice.errors import (
    EXIT_CODES,
    Category,
    DigestMismatch,
    InfrastructureError,
    InvalidSpec,
    SchedulingError,
    SluiceError,
    StoreUnavailable,
)

STORE = """\
apiVersion: sluice.dev/v1alpha1
kind: StreamStore
metadata: {name: local}
spec: {pravega: {controllerURI: "tcp://127.0.0.1:1"}}
---
"""
GOOD = (
    STORE
    + """\
apiVersion: sluice.dev/v1alpha1
kind: StreamCopy
metadata: {name: orders}
spec:
  source: {storeRef: {name: local}, scope: in, stream: orders}
  target: {storeRef: {name: local}, scope: out, stream: orders}
"""
)


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unset the variables of the user who runs the tests."""
    for name in ("SLUICE_CLUSTER_ID", "SLUICE_CREDENTIALS_DIR", "SLUICE_STORE_TIMEOUT"):
        monkeypatch.delenv(name, raising=False)


def main(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Run the command line as the program does; return its exit code."""
    monkeypatch.setattr(sys, "argv", ["sluice", *arguments])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert isinstance(end.value.code, int)
    return end.value.code


@pytest.mark.parametrize(
    "command",
    [
        [],
        ["plan"],
        ["run"],
        ["verify"],
        ["abort"],
        ["status"],
        ["drain"],
        ["streams"],
        ["streams", "stale"],
    ],
    ids=str,
)
def test_help_is_shown_for_every_command(command: list[str]) -> None:
    """-h explains each command and exits with 0."""
    result = CliRunner().invoke(cli.cli, [*command, "-h"])
    assert result.exit_code == 0
    assert "Usage: " in result.output


def test_the_help_lists_commands_and_exit_codes() -> None:
    """The first page of help names all commands and explains the exit codes."""
    text = CliRunner().invoke(cli.cli, ["-h"]).output
    for word in (
        "plan",
        "run",
        "verify",
        "abort",
        "status",
        "drain",
        "streams",
        "Exit codes",
        "130 interrupted",
    ):
        assert word in text


def test_the_documented_exit_codes_are_the_real_ones() -> None:
    """The module's docstring gives each category the code it has."""
    said = dict(re.findall(r"(\d+) ([a-z][a-z' ]+)", " ".join(str(cli.__doc__).split())))
    words = {
        Category.SPEC: "wrong input",
        Category.BACKEND: "the store said no or was away too long",
        Category.INFRASTRUCTURE: "what runs the copy broke",
        Category.SCHEDULING: "no room to run it",
        Category.INTEGRITY: "the data are not what the plan says",
    }
    assert {str(code): words[category] for category, code in EXIT_CODES.items()} == {
        code: text for code, text in said.items() if code in "23456"
    }
    assert set(EXIT_CODES) == set(Category)


def test_the_guide_has_each_command_and_each_exit_code() -> None:
    """The table has the exit codes of failures and of waits."""
    guide = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()
    context = click.Context(cli.cli)
    for name in cli.COMMANDS:
        command = cli.cli.get_command(context, name)
        assert command is not None
        assert command.hidden or f"sluice {name}" in guide, name
    table = guide.partition("## Exit codes")[2].partition("\n## ")[0]
    told = {int(code) for code in re.findall(r"^\| (\d+)", table, re.MULTILINE)}
    assert told == {0, 1, OVER, 130, 143, *EXIT_CODES.values()}


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        ([], 0),
        ([InvalidSpec("x")], 2),
        ([StoreUnavailable("x")], 3),
        ([InfrastructureError("x")], 4),
        ([SchedulingError("x")], 5),
        ([DigestMismatch("x")], 6),
        ([InvalidSpec("x"), DigestMismatch("x"), StoreUnavailable("x")], 6),
    ],
    ids=str,
)
def test_the_highest_exit_code_counts(errors: list[SluiceError], expected: int) -> None:
    """Of several failures the worst decides; without any it is 0."""
    assert exit_code(Trouble.of(error) for error in errors) == expected


@pytest.mark.parametrize("command", ["plan", "run", "abort"])
@pytest.mark.parametrize(
    ("text", "said", "remedy"),
    [
        ("a: [", "InvalidSpec: not YAML", "Correct the file's syntax."),
        (GOOD.replace("scope: in", "scoop: in"), "spec.source.scope: ", "apply it again."),
        (GOOD.replace("spec:\n", "spec:\n  colour: red\n"), "spec.colour: there is no", "apply it"),
        (GOOD.replace(STORE, ""), "spec.source.storeRef.name: ", "Add the StreamStore"),
        (STORE, "there is no StreamCopy", "Write a document"),
    ],
    ids=["no YAML", "missing field", "unknown field", "no store", "no copy"],
)
def test_wrong_input_exits_with_2_and_a_remedy(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    command: str,
    text: str,
    said: str,
    remedy: str,
) -> None:
    """A wrong file ends each command before any call to a store, with text on stderr only."""
    file = tmp_path / "copy.yaml"
    file.write_text(text)
    assert main(monkeypatch, command, "-f", str(file)) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert said in shown.err
    assert remedy in shown.err


def test_hooks_are_refused_where_no_cluster_runs_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A copy without the Job that stops its writers would miss events."""
    file = tmp_path / "copy.yaml"
    file.write_text(f"{GOOD}  hooks: {{before: {{cronJobRef: {{name: stop-writers}}}}}}\n")
    assert main(monkeypatch, "run", "-f", str(file)) == 2
    said = capsys.readouterr().err
    assert "StreamCopy 'orders' has hooks" in said
    assert "spec.hooks" in said


@pytest.mark.parametrize("content", [None, b"\xff\xfe\xff"], ids=["missing", "not UTF-8"])
def test_a_file_that_cannot_be_read_exits_with_2(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    content: bytes | None,
) -> None:
    """A missing file and a file that is no text are wrong input."""
    file = tmp_path / "copy.yaml"
    if content is not None:
        file.write_bytes(content)
    assert main(monkeypatch, "run", "-f", str(file)) == 2
    assert "cannot be read" in capsys.readouterr().err


@pytest.mark.parametrize("create", [(), ("--create", "1")])
@pytest.mark.parametrize("name", ["shop/_RGorders", "_system/orders", "shop/under_score"])
def test_no_events_go_to_streams_of_the_stores_own(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    name: str,
    create: tuple[str, ...],
) -> None:
    """They are neither made nor written to, and the store gets no call."""
    events = tmp_path / "events"
    events.write_text("one\n")
    words = ("streams", "write", name, str(events), "--store", "tcp://127.0.0.1:1", *create)
    assert main(monkeypatch, *words) == 2
    said = capsys.readouterr().err
    assert f"STREAM: {name} can be neither made nor written to" in said
    assert "those with _ are its own: choose another" in " ".join(said.split())


@pytest.mark.parametrize(
    "arguments",
    [["run"], ["run", "-f", "x", "--tasks", "0"], ["fly"], ["run", "-f", "x", "--patience", "-1"]],
    ids=" ".join,
)
def test_a_wrong_command_line_exits_with_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    """Missing, unknown and impossible options are wrong input, with the usage on stderr."""
    assert main(monkeypatch, *arguments) == 2
    assert "Usage: " in capsys.readouterr().err


def test_a_wrong_variable_exits_with_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """An environment variable with a wrong value is wrong input, named on stderr."""
    file = tmp_path / "copy.yaml"
    file.write_text(GOOD)
    monkeypatch.setenv("SLUICE_STORE_TIMEOUT", "soon")
    assert main(monkeypatch, "plan", "-f", str(file)) == 2
    assert "SLUICE_STORE_TIMEOUT" in capsys.readouterr().err


def test_a_secret_without_a_folder_exits_with_3(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A store with credentials, and no folder to read them from, says which folder is missing."""
    file = tmp_path / "copy.yaml"
    auth = 'tcp://127.0.0.1:1", auth: {basic: {secretRef: {name: login}}}'
    file.write_text(GOOD.replace('tcp://127.0.0.1:1"', auth))
    assert main(monkeypatch, "plan", "-f", str(file)) == 3
    shown = capsys.readouterr().err
    assert "AuthenticationFailed" in shown
    assert "SLUICE_CREDENTIALS_DIR" in shown


def test_the_version_is_shown() -> None:
    """--version names the program, its version, and the language in which it counts events."""
    told = CliRunner().invoke(cli.cli, ["--version"]).output
    assert told == f"sluice, version {__version__}, counts events in {framing.LANGUAGE}\n"
