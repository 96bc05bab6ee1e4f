"""Plan a query: compile it, and make the program of an engine that is not Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sluice.pipelines.query.arrow.compile import compiled_program
from sluice.pipelines.query.compile import UncompiledQuery, compiled, resolved

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sluice.core.query.arrow.program import Program
    from sluice.core.query.plan import QueryPlan, QueryRequest


class PlannedQuery(NamedTuple):
    """A query that was compiled.

    Attributes:
        plan: its plan.
        program: what Arrow does, if it is the engine; else None.
    """

    plan: QueryPlan
    program: Program | None


def planned(spark: SparkSession, request: QueryRequest) -> PlannedQuery:
    """Plan a query. No store is asked.

    Raises:
        InvalidQuery: the text, a schema, a parameter or a key is wrong, or the engine cannot
            compute a part of it.
    """
    wanted = UncompiledQuery(
        request.sources, request.sql, request.parameters, request.keys, request.emit
    )
    plan = request.planned(compiled(spark, wanted))
    if plan.engine == "Spark":
        return PlannedQuery(plan, None)
    return PlannedQuery(plan, compiled_program(resolved(spark, wanted), plan))
