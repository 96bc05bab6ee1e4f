"""Find the default namespace of a user or a pod, for commands that name none."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from kubernetes.aio import config as kubernetes_config

POD_NAMESPACE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
"""The namespace of the pod that this process is in."""

_IN_A_POD: Final = "KUBERNETES_SERVICE_HOST"
_DEFAULT: Final = "default"


def current_namespace() -> str:
    """Return the pod's own namespace, or that of KUBECONFIG's context, as kubectl does."""
    if os.environ.get(_IN_A_POD) and POD_NAMESPACE.is_file():
        return POD_NAMESPACE.read_text(encoding="utf-8").strip() or _DEFAULT
    try:
        _, active = kubernetes_config.list_kube_config_contexts()  # type: ignore[no-untyped-call]
    except kubernetes_config.ConfigException:
        return _DEFAULT
    return str((active.get("context") or {}).get("namespace") or _DEFAULT)
