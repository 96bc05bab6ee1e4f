"""The command line: copies without a cluster, an administrator's work, and what runs in pods.

Exit codes: 0 done (or done before), 1 an error of Sluice itself, 2 wrong input, 3 the store said
no or was away too long, 4 what runs the copy broke, 5 no room to run it, 6 the data are not what
the plan says, 130 interrupted, 143 told to stop. With several copies in a file the highest counts.
"""

from __future__ import annotations

import sys

import click

from sluice import __version__, console, logs
from sluice.commands import archives, copying, pods, positions, status, streams, uninstall, verify
from sluice.commands.shared import EXIT_CODES
from sluice.core.events import framing
from sluice.errors import SluiceError
from sluice.pipelines.driver.stopping import Terminated


@click.group(context_settings={"help_option_names": ["-h", "--help"]}, epilog=__doc__)
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
def cli(*, log_level: str, log_json: bool) -> None:
    """Copy streams exactly once, verified and restartable."""
    logs.configure(log_level, as_json=log_json)


for command in (
    copying.plan,
    copying.run,
    copying.abort,
    positions.position,
    verify.verify,
    archives.archive,
    status.status,
    streams.streams,
    uninstall.drain,
    pods.driver,
    pods.operator,
):
    cli.add_command(command)


def main() -> None:
    """Run the command line; errors of the tree become a message and an exit code."""
    try:
        cli(standalone_mode=False)
    except SluiceError as error:
        console.show_error(error)
        sys.exit(EXIT_CODES[error.category])
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except Terminated:
        sys.exit(143)
    except (KeyboardInterrupt, click.Abort):
        console.err.print("Interrupted. What is staged is kept: run again to go on.")
        sys.exit(130)
