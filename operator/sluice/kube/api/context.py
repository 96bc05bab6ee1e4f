"""Find the API server and the default namespace of a user or a pod."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final
from urllib.request import getproxies

import yaml
from kubernetes.aio import client as kubernetes_client
from kubernetes.aio import config as kubernetes_config

from sluice.errors import ApiUnavailable

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


async def configuration() -> kubernetes_client.Configuration:
    """Return the address and the login of the pod's service account, or else of KUBECONFIG.

    Raises:
        ApiUnavailable: neither exists, or it cannot be read.
    """
    found = kubernetes_client.Configuration()
    # No limit: each watch keeps a connection, and calls must not wait until a watch ends.
    found.connection_pool_maxsize = 0
    # If no proxy is set, the library must not look for one: it would read ~/.netrc at each
    # call, which takes longer than the call itself and is of no use here.
    found.client_session_kwargs = {"trust_env": bool(getproxies())}
    try:
        kubernetes_config.load_incluster_config(  # type: ignore[no-untyped-call]
            client_configuration=found
        )
    except kubernetes_config.ConfigException:
        try:
            await kubernetes_config.load_kube_config(  # type: ignore[no-untyped-call]
                client_configuration=found
            )
        except (kubernetes_config.ConfigException, yaml.YAMLError, OSError) as error:
            raise ApiUnavailable(
                f"no way to a Kubernetes API: {error}",
                remedy="Run in a pod with a service account, or set KUBECONFIG.",
            ) from error
    return found
