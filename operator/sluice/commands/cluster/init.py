"""Implement `sluice init`: make what a first copy needs; and `sluice sample`, its part in a pod.

The sample's events are written by a Job in the cluster. A store's address inside of a cluster often
leads nowhere on the machine of a person: a Service has no address there, and a forwarded port
reaches Pravega's controller, which then names the segment stores by addresses of pods. A Job with
the operator's image gets where drivers get, by the same address and the same Secret.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click
import yaml

from sluice import console
from sluice.api.fields.backends import Holds, kind_of
from sluice.api.fields.common import GROUP, VERSION
from sluice.api.kinds.streamstore import StreamStore
from sluice.commands.cluster.shared import connected
from sluice.commands.shared import CREDENTIALS, settings_of
from sluice.core.values.model import StoreAddress
from sluice.core.values.trouble import Trouble
from sluice.core.workloads import access
from sluice.core.workloads.request import store_address
from sluice.engine.streams.sample import EVENTS, SAMPLE, make_sample
from sluice.errors import EXIT_CODES, AccessDenied, SluiceError
from sluice.pipelines.driver import termination
from sluice.pipelines.programs.stores import Stores

if TYPE_CHECKING:
    from sluice.api.fields.backends import Backend
    from sluice.api.kinds.streamstore import Operation
    from sluice.kube.api.client import Api
    from sluice.kube.api.kinds import Object

OPERATORS_NAMESPACE: Final = "sluice-system"

_COPY: Final = f"""\
apiVersion: {GROUP}/{VERSION}
kind: StreamCopy
metadata:
  name: {SAMPLE.stream}
spec:
  source:
    storeRef: {{name: STORE}}
    scope: {SAMPLE.scope}
    stream: {SAMPLE.stream}
  target:
    storeRef: {{name: STORE}}
    scope: backup
    scopePolicy: CreateIfAbsent
    stream: {SAMPLE.stream}
"""
"""The copy that the command proposes: examples/first-copy.yaml, with the name of the store."""


class InitRequest(NamedTuple):
    """The request of a person.

    Attributes:
        store: the StreamStore's name.
        uri: the address of its server.
        namespace: the namespace.
        named: whether the person named the namespace, so that it is made.
        sample: whether to make the sample stream.
        operators: the namespace of the operator, whose image the sample's pod has.
        image: another image for it.
    """

    store: str
    uri: str
    namespace: str
    named: bool
    sample: bool
    operators: str
    image: str | None

    @property
    def kind(self) -> Backend:
        """The kind of the store."""
        return kind_of(self.uri, Holds.LIVE)

    @property
    def resource(self) -> Object:
        """The StreamStore."""
        return {
            "apiVersion": f"{GROUP}/{VERSION}",
            "kind": StreamStore.__name__,
            "metadata": {"name": self.store, "namespace": self.namespace},
            "spec": self.kind.part_at(self.uri),
        }


@click.command()
@click.option("--store", "-s", required=True, metavar="NAME", help="The StreamStore's name.")
@click.option(
    "--uri",
    required=True,
    metavar="tcp://HOST:PORT",
    help="Pravega's controller, at the address that pods of the cluster have for it; with TLS "
    "tls://HOST:PORT.",
)
@click.option(
    "-n",
    "--namespace",
    metavar="NAME",
    help="The namespace, which is made if there is none.  [default: that of KUBECONFIG's context]",
)
@click.option(
    "--sample",
    is_flag=True,
    help=f"Also make the stream {SAMPLE} with {EVENTS:,} events, by a Job in the cluster.",
)
@click.option(
    "--operator-namespace",
    "operators",
    default=OPERATORS_NAMESPACE,
    show_default=True,
    metavar="NAME",
    help="Where the operator runs, whose image the Job has.",
)
@click.option("--image", metavar="IMAGE", help="Another image for the Job.")
@click.option("--dry-run", is_flag=True, help="Change nothing, and print the objects.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["yaml", "json"]),
    default="yaml",
    show_default=True,
    help="How --dry-run prints the objects.",
)
def init(
    *,
    store: str,
    uri: str,
    namespace: str | None,
    dry_run: bool,
    output: str,
    **options: Any,
) -> None:
    """Make what a first copy needs: a namespace, a StreamStore, and a sample stream in the store.

    You may run it again. It never changes what is there: if an object differs from the request, it
    names the field, and ends.
    """
    # Imported here: few commands need Kubernetes' client, which takes a second.
    from sluice.kube.api.context import current_namespace  # noqa: PLC0415
    from sluice.kube.api.objects import parse  # noqa: PLC0415

    wanted = InitRequest(
        store, uri, namespace or current_namespace(), namespace is not None, **options
    )
    parse(wanted.resource, StreamStore)  # a wrong name or address ends it before anything is made
    if dry_run:
        _print(asyncio.run(_objects(wanted)), output)
        return
    trouble = asyncio.run(_make(wanted))
    if trouble is not None:
        console.show_trouble(trouble)
        sys.exit(EXIT_CODES[trouble.category])
    _advise(wanted)


async def _objects(wanted: InitRequest) -> list[Object]:
    """Return the objects that would be made. The cluster is asked for the operator's image only."""
    from sluice.administration.setup import namespace_body  # noqa: PLC0415 - takes a second

    found = [namespace_body(wanted.namespace)] if wanted.named else []
    found.append(wanted.resource)
    if wanted.sample:
        async with connected(wanted.namespace) as place:
            address = StoreAddress(backend=wanted.kind.name, uri=wanted.uri)
            found.append(await _job(place.api, wanted, address))
    return found


async def _make(wanted: InitRequest) -> Trouble | None:
    """Make all that is missing. Return why the sample's Job failed, if it did."""
    from sluice.administration.setup import ensure, ensure_namespace  # noqa: PLC0415
    from sluice.kube.api.kinds import STREAM_STORE  # noqa: PLC0415
    from sluice.kube.api.objects import parse  # noqa: PLC0415

    async with connected(wanted.namespace, changes=True) as (api, _):
        if wanted.named:
            made = await ensure_namespace(api, wanted.namespace)
            _tell(f"namespace/{wanted.namespace}", made=made)
        body, made = await ensure(api, STREAM_STORE, wanted.namespace, wanted.resource)
        _tell(f"streamstore/{wanted.store}", made=made)
        # The resource as it is there: it may have a login, and rules.
        return await _fill(api, wanted, parse(body, StreamStore)) if wanted.sample else None


async def _fill(api: Api, wanted: InitRequest, store: StreamStore) -> Trouble | None:
    """Run the Job that makes the sample stream. Return why it failed, if it did.

    Raises:
        AccessDenied: the StreamStore does not allow that.
    """
    from sluice.administration.setup import run_job  # noqa: PLC0415 - takes a second

    needs: tuple[Operation, ...] = ("Create", "Append")
    try:
        access.check(store.spec.access, store=wanted.store, scope=SAMPLE.scope, operations=needs)
    except AccessDenied as error:
        error.field = "--sample"
        raise
    job = await _job(api, wanted, store_address(store))
    name = job["metadata"]["name"]
    _say(f"job/{name} makes the stream {SAMPLE} ...")
    trouble = await run_job(api, job, lambda words: _say(f"  it waits: {words}"))
    if trouble is None:
        _say(f"{SAMPLE} holds {EVENTS:,} events")
    else:
        _say(f"job/{name} failed: kubectl -n {wanted.namespace} logs job/{name}")
    return trouble


async def _job(api: Api, wanted: InitRequest, address: StoreAddress) -> Object:
    """Return the sample's Job."""
    from sluice.administration.setup import operators_image  # noqa: PLC0415 - takes a second
    from sluice.kube.jobs.sample import PodImage, sample_job  # noqa: PLC0415 - as above

    image = (
        await operators_image(api, wanted.operators)
        if wanted.image is None
        else PodImage(wanted.image)
    )
    return sample_job(wanted.namespace, address, image)


def _tell(what: str, *, made: bool) -> None:
    _say(f"{what} {'is made' if made else 'is there'}")


def _say(text: str) -> None:
    console.err.print(console.printable(text), markup=False)


def _advise(wanted: InitRequest) -> None:
    """Print the next command."""
    if not wanted.sample:
        words = f"sluice wait sst/{wanted.store} -n {wanted.namespace}"
        console.err.print(
            f"Next, wait until the operator reaches the store:\n{words}", markup=False
        )
        return
    console.err.print("Next, copy it:", markup=False)
    apply = f"kubectl -n {wanted.namespace} apply -f - <<'EOF'"
    copy = _COPY.replace("STORE", wanted.store)
    console.err.print(f"{apply}\n{copy}EOF", markup=False)


def _print(objects: list[Object], output: str) -> None:
    """Print objects as kubectl takes them."""
    if output == "yaml":
        click.echo(yaml.safe_dump_all(objects, sort_keys=False), nl=False)
        return
    click.echo(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}, indent=2))


@click.command(hidden=True)
@click.option("--address", required=True, help="The store's address, a StoreAddress in JSON.")
@CREDENTIALS
def sample(*, address: str, credentials_dir: Path | None) -> None:
    """Make the sample stream (in the pod of init's Job).

    SLUICE_TERMINATION_LOG names the file for the termination message.
    """
    log = os.environ.get("SLUICE_TERMINATION_LOG")
    place = StoreAddress.model_validate_json(address)
    try:
        with Stores(settings_of(credentials_dir)) as stores:
            count = make_sample(stores[place])
    except SluiceError as error:
        termination.write(Path(log) if log else None, Trouble.of(error))
        raise
    _say(f"{SAMPLE} holds {count:,} events")
