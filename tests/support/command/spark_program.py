"""A program with a Spark session, as a user of `pyspark_sluice` has it.

It runs the snippets of Python that it is given, one JSON object a line, and answers with the JSON
of their variable `result`.
"""

from __future__ import annotations

import json
import sys
import traceback
from typing import IO, Any

from pyspark.sql import SparkSession


def main(answers: IO[str]) -> None:
    """Serve until the input ends."""
    builder: Any = SparkSession.builder
    settings = {
        "spark.master": "local[2]",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        **json.loads(sys.argv[1]),
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    known: dict[str, Any] = {"spark": spark}
    print(json.dumps({"result": "ready"}), file=answers, flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        known |= asked["given"] | {"result": None}
        try:
            exec(asked["code"], known)  # noqa: S102 - the tests' own
            answer = {"result": known["result"]}
        except Exception as error:  # noqa: BLE001 - the test gets it
            answer = {"error": f"{error}", "trace": traceback.format_exc()}
        print(json.dumps(answer, default=str), file=answers, flush=True)
    spark.stop()


if __name__ == "__main__":
    # Spark's own lines must not come between the answers.
    with open(sys.argv[2], "w", encoding="utf-8") as pipe:  # noqa: PTH123 - a pipe by its number
        main(pipe)
