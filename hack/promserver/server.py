"""A server as a process of this machine."""

import json
import urllib.error
import urllib.parse
import urllib.request
from http import HTTPStatus
from typing import Any, Self

from localstore.errors import LocalStoreError
from localstore.ports import HOST, free_ports
from localstore.process import Process
from localstore.scratch import Scratch
from promserver.program import programs

_READY_SECONDS = 60.0
_CALL_SECONDS = 30.0


class Prometheus:
    """A server that scrapes one target every second.

    Its data are deleted when it stops.

    Args:
        target: host and port of the target.
        labels: labels of the target.
        honor: whether a label of a metric counts more than one of the target.
        rules: groups of rules, as Prometheus' file has them.
    """

    def __init__(
        self, target: str, *, labels: dict[str, str], honor: bool, rules: dict[str, Any]
    ) -> None:
        (self._port,) = free_ports(1)
        self._scratch = Scratch("prometheus")
        self._rules = self._scratch.path / "rules.yml"
        self._config = self._scratch.path / "prometheus.yml"
        job = {
            "job_name": "test",
            "honor_labels": honor,
            "static_configs": [{"targets": [target], "labels": labels}],
        }
        times = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        # Both files are YAML, which JSON is a part of.
        self._rules.write_text(json.dumps(rules))
        self._config.write_text(
            json.dumps({"global": times, "rule_files": [str(self._rules)], "scrape_configs": [job]})
        )
        self._process: Process | None = None

    def __enter__(self) -> Self:
        """Start the server, and wait until it serves.

        Raises:
            LocalStoreError: the server does not start.
            LocalClusterError: the program cannot be downloaded.
        """
        self._process = Process.spawn(
            "prometheus",
            [
                str(programs().prometheus),
                f"--config.file={self._config}",
                f"--storage.tsdb.path={self._scratch.path / 'data'}",
                f"--web.listen-address={HOST}:{self._port}",
                "--log.level=warn",
            ],
            log=self._scratch.path / "prometheus.log",
            tethered=True,
        )
        self._process.wait_ready(self._is_ready, seconds=_READY_SECONDS)
        return self

    def __exit__(self, *_exc: object) -> None:
        """Stop the server."""
        if self._process is not None:
            self._process.stop()
        self._scratch.remove()

    def query(self, text: str) -> list[dict[str, Any]]:
        """Return the series that a query gives now, each with its labels and its value.

        Raises:
            LocalStoreError: the server refuses the query.
        """
        found: list[dict[str, Any]] = self._get("query", query=text)["result"]
        return found

    def rules(self) -> list[dict[str, Any]]:
        """Return the rules with their health, last error and active alerts."""
        return [rule for group in self._get("rules")["groups"] for rule in group["rules"]]

    def _get(self, path: str, **parameters: str) -> dict[str, Any]:
        query = urllib.parse.urlencode(parameters)
        try:
            with self._open(f"api/v1/{path}?{query}") as sent:
                data: dict[str, Any] = json.load(sent)["data"]
        except urllib.error.HTTPError as error:
            raise LocalStoreError(f"{parameters}: {error.read().decode()}") from error
        return data

    def _is_ready(self) -> bool:
        try:
            with self._open("-/ready") as sent:
                return bool(sent.status == HTTPStatus.OK)
        except OSError:
            return False

    def _open(self, path: str) -> Any:
        url = f"http://{HOST}:{self._port}/{path}"
        return urllib.request.urlopen(url, timeout=_CALL_SECONDS)
