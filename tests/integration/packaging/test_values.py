"""Values that the chart's schema refuses, each with a message that names the field."""

from typing import Any

import pytest

from support.kube.chart import refusal

REFUSED: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "unknown value": ({"replicas": 2}, ("'replicas' not allowed",)),
    "unknown value of the operator": ({"operator": {"pods": 2}}, ("/operator", "pods")),
    "no replica": ({"operator": {"replicas": 0}}, ("/operator/replicas", "minimum")),
    "no repository": ({"image": {"repository": ""}}, ("/image/repository",)),
    "tag with a colon": ({"image": {"tag": "sluice:1"}}, ("/image/tag",)),
    "tag that is a number": ({"image": {"tag": 1.5}}, ("/image/tag", "want string")),
    "short digest": ({"image": {"digest": "sha256:abc"}}, ("/image/digest",)),
    "pull policy": ({"image": {"pullPolicy": "Sometimes"}}, ("/image/pullPolicy", "Always")),
    "pull secret without a name": ({"imagePullSecrets": ["a"]}, ("/imagePullSecrets/0",)),
    "text for a switch": ({"crds": {"install": "no"}}, ("/crds/install", "want boolean")),
    "one namespace instead of a list": (
        {"watch": {"namespaces": "demo"}},
        ("/watch/namespaces", "want array"),
    ),
    "a pattern of no namespace": (
        {"watch": {"excludedNamespaces": ["Team"]}},
        ("/watch/excludedNamespaces/0", "pattern"),
    ),
    "a namespace twice": ({"watch": {"namespaces": ["a", "a"]}}, ("/watch/namespaces", "equal")),
    "no name of a namespace": ({"driver": {"namespaces": ["A_b"]}}, ("/driver/namespaces/0",)),
    "a store that is no URL": ({"stores": {"allowed": ["pravega:9090"]}}, ("/stores/allowed/0",)),
    "a text that CEL would read": (
        {"stores": {"allowed": ["tcp://x' || true || '"]}},
        ("/stores/allowed/0", "pattern"),
    ),
    "cluster id": ({"clusterID": "a/b"}, ("/clusterID",)),
    "log level": ({"operator": {"logLevel": "trace"}}, ("/operator/logLevel", "debug")),
    "no look": ({"operator": {"lookSeconds": 1}}, ("/operator/lookSeconds", "minimum")),
    "no series": (
        {"operator": {"metrics": {"maxResources": 0}}},
        ("/operator/metrics/maxResources", "minimum"),
    ),
    "an age as a text": (
        {"monitoring": {"prometheusRule": {"backupAgeSeconds": "8d"}}},
        ("/monitoring/prometheusRule/backupAgeSeconds", "want integer"),
    ),
    "no resync": ({"operator": {"resyncSeconds": 0}}, ("/operator/resyncSeconds", "minimum")),
    "labels that the chart selects by": (
        {"operator": {"podLabels": {"app.kubernetes.io/name": "x"}}},
        ("/operator/podLabels/app.kubernetes.io~1name",),
    ),
    "a sink that is no URL": ({"notices": {"sink": "events.example"}}, ("/notices/sink",)),
    "a sink with credentials": (
        {"notices": {"sink": "https://me:secret@events.example"}},
        ("/notices/sink",),
    ),
    "a header that is none": (
        {"notices": {"header": {"name": "X Y"}}},
        ("/notices/header/name", "pattern"),
    ),
    "an endpoint with credentials": (
        {"tracing": {"endpoint": "https://me:secret@traces.example"}},
        ("/tracing/endpoint",),
    ),
    "a sampler that is none": ({"tracing": {"sampler": "some"}}, ("/tracing/sampler",)),
    "more than all traces": (
        {"tracing": {"samplerArgument": "1.5"}},
        ("/tracing/samplerArgument",),
    ),
    "an uninstall's policy": ({"uninstall": {"policy": "keep"}}, ("/uninstall/policy", "refuse")),
    "no time to uninstall": (
        {"uninstall": {"timeoutSeconds": 30}},
        ("/uninstall/timeoutSeconds", "minimum"),
    ),
    "uninstalling without a policy": ({"uninstall": {"policy": None}}, ("/uninstall", "policy")),
    "no profile": ({"profiles": {"default": None}}, ("/profiles", "minProperties")),
    "name of a profile": ({"profiles": {"Large": {}}}, ("/profiles", "'Large' not allowed")),
    "a pod in a profile": (
        {"profiles": {"default": {"podTemplate": {}}}},
        ("/profiles/default", "podTemplate"),
    ),
    "slots": ({"profiles": {"default": {"slots": 0}}}, ("/profiles/default/slots", "minimum")),
    "memory without its unit's spelling": (
        {"profiles": {"default": {"driver": {"resources": {"limits": {"memory": "2GB"}}}}}},
        ("/profiles/default/driver/resources/limits/memory", "2GB"),
    ),
    "memory as a number": (
        {"profiles": {"default": {"maxResources": {"memory": 8589934592}}}},
        ("/profiles/default/maxResources/memory", "want string"),
    ),
    "devices": (
        {"profiles": {"default": {"executor": {"resources": {"limits": {"nvidia.com/gpu": "1"}}}}}},
        ("/profiles/default/executor/resources/limits", "nvidia.com/gpu"),
    ),
    "a driver with cores": (
        {"profiles": {"default": {"driver": {"cores": 2}}}},
        ("/profiles/default/driver", "cores"),
    ),
    "what is not Spark's": (
        {"profiles": {"default": {"sparkConf": {"hadoop.x": "1"}}}},
        ("/profiles/default/sparkConf", "hadoop.x"),
    ),
    "a number for Spark": (
        {"profiles": {"default": {"sparkConf": {"spark.task.cpus": 1}}}},
        ("/profiles/default/sparkConf/spark.task.cpus", "want string"),
    ),
    "labels by which Sluice finds its pods": (
        {"profiles": {"default": {"labels": {"sluice.dev/copy-uid": "x"}}}},
        ("/profiles/default/labels/sluice.dev~1copy-uid",),
    ),
    "a toleration's effect": (
        {"profiles": {"default": {"tolerations": [{"effect": "Never"}]}}},
        ("/profiles/default/tolerations/0/effect",),
    ),
    "port": (
        {"networkPolicy": {"egress": {"stores": {"ports": [70000]}}}},
        ("/networkPolicy/egress/stores/ports/0", "maximum"),
    ),
    "an address that is no range": (
        {"networkPolicy": {"egress": {"apiServer": {"cidrs": ["10.0.0.1"]}}}},
        ("/networkPolicy/egress/apiServer/cidrs/0",),
    ),
    "a peer that is empty": (
        {"networkPolicy": {"ingress": {"from": [{}]}}},
        ("/networkPolicy/ingress/from/0", "minProperties"),
    ),
    "interval": (
        {"monitoring": {"serviceMonitor": {"interval": "often"}}},
        ("/monitoring/serviceMonitor/interval",),
    ),
    "executors where nothing is watched": (
        {"watch": {"namespaces": ["shop"]}, "driver": {"namespaces": ["demo"]}},
        ("driver.namespaces", "demo", "watch.namespaces"),
    ),
}


@pytest.mark.parametrize(("values", "named"), REFUSED.values(), ids=REFUSED.keys())
def test_wrong_values_are_refused(values: dict[str, Any], named: tuple[str, ...]) -> None:
    """Helm renders nothing for wrong values, and its message names the field."""
    said = refusal(values)
    assert all(part in said for part in named), said


def test_the_chart_can_be_part_of_another() -> None:
    """The schema allows the value `global`, which Helm hands to each subchart."""
    assert refusal({"global": {"registry": "r.example"}}) == ""
