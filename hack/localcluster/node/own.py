"""Our own one-node cluster on this machine."""

import json
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from localcluster import packages, tools
from localcluster.cluster import Cluster
from localcluster.commands import Say
from localcluster.errors import LocalClusterError
from localcluster.images.builder import Builder
from localcluster.images.image import Image
from localcluster.images.imports import NodeImages
from localcluster.node.layout import DNS_SERVICE, Layout, state_folder
from localcluster.node.needs import Needs
from localcluster.node.node import NAMES, Node
from localcluster.progress import step
from localcluster.toolchain import Programs, compile_programs, programs
from localstore.cache import cache_root, locked

_RECIPES = Path(__file__).parents[2] / "cluster" / "images"
_MANIFESTS = Path(__file__).parents[2] / "cluster" / "manifests"

# The tag is independent of the sources: a running runtime has this name in its settings, and the
# image never changes.
_PAUSE = "localhost/pause:1"


class OwnCluster(Cluster):
    """One node with all components of Kubernetes, compiled here. A machine can have only one."""

    def __init__(self) -> None:
        self._layout = Layout.load()
        self._builder = Builder()
        self._node_images = NodeImages(self._layout, self._builder)
        super().__init__(self._node_images)
        self.kubeconfig = self._layout.kubeconfig
        self.pods_reachable = self.services_reachable = True
        self.what = "our own one-node cluster"

    def up(self, say: Say = print, images: Sequence[Callable[[], Image]] = ()) -> list[str]:
        """Compile and build missing programs and images, and start the cluster."""
        with locked(_lock()):
            needs = Needs.find(base=not self._builder.has_base())
            for line in needs.lines():
                say(line)
            needs.check(cache_root())
            if needs.packages:
                with step(say, "installing Debian packages"):
                    packages.install(list(needs.packages))
            node = Node(self._layout)
            node.start_runtime(_PAUSE)
            with ThreadPoolExecutor(2, thread_name_prefix="localcluster") as workers:
                # The compiler keeps the processors busy, but images mostly wait for downloads.
                compiled = workers.submit(_compile, say)
                references = workers.submit(self._provide, images, say)
                helm = workers.submit(lambda: (compiled.result(), tools.helm(say)))
                try:
                    self._start(node, compiled.result(), say)
                    helm.result()
                except BaseException:
                    workers.shutdown(wait=False, cancel_futures=True)  # cancel work not begun yet
                    raise
        return references.result()

    def down(self, say: Say = print, *, wipe: bool = False) -> None:
        """Stop all processes of the cluster and undo its changes to the machine's network."""
        with locked(_lock()):
            with step(say, f"stopping {self.what}"):
                Node(self._layout).stop()
                self._builder.release()
            if wipe:
                with step(say, "removing its objects, images and certificates"):
                    shutil.rmtree(self._layout.state)
                say(f"what was compiled and built stays in {cache_root()}")

    def status(self) -> list[str]:
        """Return the cluster's nodes and pods. Raise if a component does not run."""
        node = Node(self._layout)
        if not node.running:
            missing = [name for name in NAMES if name not in node.processes]
            raise LocalClusterError(f"{self.what} is not up: {', '.join(missing)} not running")
        return [
            f"{self.what} is up",
            *self.kubectl("get", "nodes,pods", "--all-namespaces").splitlines(),
            f"KUBECONFIG {self.kubeconfig}",
            f"logs       {self._layout.state / 'logs'}",
        ]

    def make_volume(self, namespace: str, claim: str) -> None:
        """Make a volume for a claim: a directory of this machine. `down` deletes it with `wipe`."""
        name = f"{namespace}-{claim}"
        folder = self._layout.state / "volumes" / name
        self.kubectl("delete", "persistentvolume", name, "--ignore-not-found")
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir(parents=True)
        here = {"key": "kubernetes.io/os", "operator": "Exists"}  # there is one node
        spec = {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "claimRef": {"namespace": namespace, "name": claim},
            "local": {"path": str(folder)},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
        }
        body = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}}
        self.kubectl("apply", "--filename=-", stdin=json.dumps(body | {"spec": spec}))

    def _provide(self, images: Sequence[Callable[[], Image]], say: Say) -> list[str]:
        self._builder.build_base(say)
        return [self._node_images.provide(describe(), say) for describe in images]

    def _start(self, node: Node, compiled: Programs, say: Say) -> None:
        pause = self._builder.build(_system_image(_PAUSE, compiled), say)
        dns = self._builder.build(_system_image(f"localhost/coredns:{compiled.key}", compiled), say)
        for image in (pause, dns):
            self._node_images.load(image, say)
        node.start(compiled.testnode, say)
        manifest = (_MANIFESTS / "coredns.yaml").read_text()
        manifest = manifest.replace("$(ADDRESS)", DNS_SERVICE).replace("$(IMAGE)", dns.reference)
        self.kubectl("apply", "--filename=-", stdin=manifest)
        with step(say, "waiting for the cluster's name service"):
            words = ["rollout", "status", "deployment/coredns", "--namespace=kube-system"]
            self.kubectl(*words, "--timeout=90s", timeout=100)


def _lock() -> Path:
    """Return the lock's path, which is beside the state because that can be wiped."""
    return state_folder().with_suffix(".lock")


def _compile(say: Say) -> Programs:
    if programs().there:
        return programs()
    with step(say, "compiling Kubernetes"):
        return compile_programs(say)


def _system_image(reference: str, compiled: Programs) -> Image:
    recipe = reference.rpartition("/")[2].partition(":")[0]
    return Image(
        reference,
        context=compiled.folder,
        dockerfile=_RECIPES / recipe / "Dockerfile",
        settled=True,
    )
