"""Start, stop or use a local Kubernetes, and a Pravega in it."""

import argparse
import sys
import time
from pathlib import Path

from localcluster.choose import choose
from localcluster.cluster import Cluster
from localcluster.commands import Say
from localcluster.release import TEST_DEFINITIONS
from localcluster.store import ClusterStore
from localstore.errors import LocalStoreError


def main() -> int:
    """Run the command line.

    Returns:
        The exit code; for `status`, 1 if the cluster does not serve.
    """
    options = _parser().parse_args()
    try:
        _run(options, choose(), _clocked())
    except LocalStoreError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m localcluster", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("up", help="start the cluster")
    down = commands.add_parser("down", help="stop it, if it is ours")
    down.add_argument("--wipe", action="store_true", help="remove its objects and images as well")
    commands.add_parser("status", help="tell whether it runs")
    commands.add_parser("tidy", help="delete the definitions of kinds that tests have made")
    commands.add_parser("kubeconfig", help="print the path of the administrator's kubeconfig")
    image = commands.add_parser("image", help="build an image and bring it to the cluster")
    image.add_argument("name", metavar="NAME")
    image.add_argument("context", metavar="CONTEXT", type=Path)
    image.add_argument("--file", type=Path, help="Dockerfile, if it is not the context's own")
    image.add_argument("--build-arg", metavar="K=V", action="append", default=[], type=_pair)
    for name, what in (("store-up", "start a Pravega in it"), ("store-down", "remove that")):
        store = commands.add_parser(name, help=what)
        store.add_argument("--auth", action="store_true", help="the one where one has to log in")
    return parser


def _pair(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator:
        raise argparse.ArgumentTypeError(f"not K=V: {text}")
    return key, value


def _run(options: argparse.Namespace, cluster: Cluster, say: Say) -> None:
    if options.command == "up":
        cluster.up(say)
        say(f"{cluster.what} is up: export KUBECONFIG={cluster.kubeconfig}")
    elif options.command == "down":
        cluster.down(say, wipe=options.wipe)
    elif options.command == "status":
        print("\n".join(cluster.status()))
    elif options.command == "tidy":
        cluster.kubectl("delete", "crd", f"--selector={TEST_DEFINITIONS}", "--wait=false")
    elif options.command == "kubeconfig":
        print(cluster.kubeconfig)
    elif options.command == "image":
        arguments = dict(options.build_arg)
        context = options.context.absolute()
        print(cluster.build_image(options.name, context, options.file, arguments, say=say))
    elif options.command == "store-up":
        cluster.status()
        print(ClusterStore(cluster, auth=options.auth).up(say))
    elif options.command == "store-down":
        ClusterStore(cluster, auth=options.auth).down()


def _clocked() -> Say:
    """Return a function that prints lines with the seconds since the start, to stderr."""
    started = time.monotonic()

    def say(text: str) -> None:
        sys.stderr.write(f"{time.monotonic() - started:6.1f} s  {text}\n")

    return say


if __name__ == "__main__":
    sys.exit(main())
