import json
from pathlib import Path

import pytest

from localcluster.node import layout as layout_module
from localcluster.node.components import component_command
from localcluster.node.layout import Layout
from localcluster.node.node import NAMES


@pytest.fixture
def layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    """Return a layout in empty directories, with its files written."""
    monkeypatch.setattr(layout_module, "RUN", tmp_path / "run")
    layout = Layout.load(tmp_path / "state")
    layout.write_files(pause_image="localhost/pause:1", mtu=1400, bridge_filtered=True)
    return layout


def test_ports_stay(layout: Layout) -> None:
    """A restarted cluster has the ports that its kubeconfig names."""
    assert Layout.load(layout.state) == layout


def test_pods_have_packets_that_pass_the_machines_network(layout: Layout) -> None:
    """Pods' interfaces have the MTU of the machine's uplink."""
    network = json.loads(layout.file("cni/10-sluice.conflist").read_text())
    assert network["plugins"][0]["mtu"] == 1400


@pytest.mark.parametrize("filtered", [True, False])
def test_neighbours_answer_through_the_machine(layout: Layout, *, filtered: bool) -> None:
    """If iptables does not see the bridge, calls to services get the machine's address."""
    layout.write_files(pause_image="localhost/pause:1", mtu=1400, bridge_filtered=filtered)
    proxy = json.loads(layout.file("proxy.json").read_text())
    assert proxy["iptables"]["masqueradeAll"] is not filtered


def test_every_component_has_a_command(layout: Layout) -> None:
    """All components but the container runtime are one program."""
    for name in NAMES[1:]:
        command = component_command(name, layout, "192.0.2.1")
        assert command[:2] == [str(layout.program), name]
    runtime = component_command("containerd", layout, "192.0.2.1")
    assert runtime[0] == "containerd"
