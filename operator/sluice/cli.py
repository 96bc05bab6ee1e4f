"""The command line: copies without a cluster, verbs for resources of a cluster, what runs in pods.

Exit codes: 0 done (or done before), 1 an error of Sluice itself, 2 wrong input, 3 the store said
no or was away too long, 4 what runs the copy broke, 5 no room to run it, 6 the data are not what
the plan says, 124 a wait took too long, 130 interrupted, 143 told to stop. With several copies the
highest counts.
"""

from __future__ import annotations

import gc
import sys
from importlib import import_module
from pathlib import Path
from typing import Final

import click

from sluice import __version__, logs
from sluice.commands.shared import PROGRAM, VARIABLE
from sluice.core.events import framing
from sluice.core.values import text
from sluice.errors import EXIT_CODES, SluiceError
from sluice.pipelines.driver.stopping import Terminated

COMMANDS: Final = {
    "abort": "copying",
    "archive": "archives",
    "check-installation": "installation",
    "completion": "cluster.completion",
    "describe": "cluster.describe",
    "drain": "uninstall",
    "driver": "pods",
    "get": "cluster.get",
    "init": "cluster.init",
    "logs": "cluster.logs",
    "operator": "pods",
    "plan": "copying",
    "position": "positions",
    "query": "query",
    "query-driver": "query_pods",
    "query-verifier": "query_pods",
    "restore": "cluster.restore",
    "resume": "cluster.verbs",
    "retry": "cluster.verbs",
    "run": "copying",
    "sample": "cluster.init",
    "serve": "cluster.serve",
    "status": "cluster.status",
    "streams": "streams.group",
    "suspend": "cluster.verbs",
    "ui": "cluster.ui",
    "verify": "verify",
    "wait": "cluster.verbs",
    "watch": "cluster.watch",
}
"""The module of `sluice.commands` in which each command stands, as a function of its name.

A function has `_` where its command has `-`.
"""

OF_PODS: Final = frozenset({"installation", "pods", "query_pods"})
"""The modules of commands that pods run. They are hidden from people."""

PLUGIN: Final = "kubectl-sluice"
"""The name under which kubectl finds this program as `kubectl sluice`."""


_INTERRUPTED: Final = "Interrupted. What is staged is kept: run again to go on."


class Commands(click.Group):
    """A group whose commands are imported when they are called: each needs little of Sluice."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names of all commands."""
        return list(COMMANDS)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command of a command line. The error suggests one for a mistyped name."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            near = text.nearest(
                args[0], (name for name in COMMANDS if COMMANDS[name] not in OF_PODS)
            )
            if near is None:
                raise
            raise click.UsageError(f"{error.message} Did you mean {near}?", ctx) from error

    # Click calls it with a context.
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import a command. None if there is none of this name."""
        if cmd_name not in COMMANDS:
            return None
        # An import leaves no garbage, and what it makes stays. So the collector need not look.
        gc.disable()
        try:
            module = import_module(f"sluice.commands.{COMMANDS[cmd_name]}")
        finally:
            gc.freeze()
            gc.enable()
        command: click.Command = getattr(module, cmd_name.replace("-", "_"))
        return command


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]}, epilog=__doc__)
@click.version_option(
    __version__,
    prog_name="sluice",
    message=f"%(prog)s, version %(version)s, counts events in {framing.LANGUAGE}",
)
@click.option(
    "--log-level",
    type=click.Choice(logs.LEVELS),
    default="warning",
    show_default=True,
    help="debug shows every step of the protocol.",
)
@click.option("--log-json", is_flag=True, help="One JSON object a line.")
@click.option("-q", "--quiet", is_flag=True, help="No progress and no notes: results and errors.")
def cli(*, log_level: str, log_json: bool, quiet: bool) -> None:
    """Copy streams exactly once, verified and restartable."""
    logs.configure(log_level, as_json=log_json)
    if quiet:
        from sluice import console  # noqa: PLC0415 - slow, and drivers need none

        console.hush()


def main() -> None:
    """Run the command line; errors of the tree become a message and an exit code."""
    name = "kubectl sluice" if Path(sys.argv[0]).stem == PLUGIN else PROGRAM
    try:
        cli(prog_name=name, complete_var=VARIABLE, standalone_mode=False)
    except SluiceError as error:
        from sluice import console  # noqa: PLC0415 - slow, and needed for messages only

        console.show_error(error)
        sys.exit(EXIT_CODES[error.category])
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except Terminated:
        sys.exit(143)
    except (KeyboardInterrupt, click.Abort) as error:
        from sluice import console  # noqa: PLC0415 - as above

        said = str(error.__cause__ or error)  # click makes an Abort of an interrupt
        console.err.print(console.Words(said or _INTERRUPTED))
        sys.exit(130)


def complete_for_kubectl() -> None:
    """Complete `kubectl sluice`: kubectl runs this program with the words, the last one unfinished.

    The answer has the form of its own library: candidates, then a line that forbids file names.
    """
    from click.shell_completion import ShellComplete  # noqa: PLC0415 - for this program only

    *words, unfinished = sys.argv[1:] or [""]
    for item in ShellComplete(cli, {}, PROGRAM, VARIABLE).get_completions(words, unfinished):
        click.echo(f"{item.value}\t{item.help}" if item.help else item.value)
    click.echo(":4")
