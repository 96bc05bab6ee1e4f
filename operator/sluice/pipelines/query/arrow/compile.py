"""Make the program of a query for Arrow from what Spark has made of its text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.core.query.arrow.kinds import known
from sluice.core.query.arrow.program import program
from sluice.core.query.arrow.terms import refuse
from sluice.core.tables.options import TableOptions
from sluice.pipelines.query.arrow.resolved import resolved_plan
from sluice.pipelines.query.compile import options_of, source_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from sluice.core.query.arrow.program import Program
    from sluice.core.query.arrow.terms import ResolvedPlan
    from sluice.core.query.plan import PlannedSource, QueryPlan
    from sluice.core.tables.decoding import Decoder


def compiled_program(frame: DataFrame, plan: QueryPlan) -> Program:
    """Return the program of a query.

    Args:
        frame: the result of the query, which Spark has resolved and nothing has computed.
        plan: the plan.

    Raises:
        InvalidQuery: Arrow cannot compute a part of it.
    """
    if len(plan.sources) > 1:
        refuse("a query of several sources")
    (source,) = plan.sources
    time = None if source.event_time is None else source.event_time.column
    try:
        found = resolved_plan(frame)
        made = program(found, time, plan.keys)
    except RecursionError:
        refuse("expressions of so many levels")
    _check_columns(found, source)
    if made.folding is not None and plan.emit == "Changes":
        refuse("windows with emit: Changes")
    return made


def decoder_of(source: PlannedSource) -> Decoder:
    """Return the decoder of a source.

    Raises:
        InvalidQuery: a column has a type that Arrow lacks.
    """
    return TableOptions.read(options_of(source)).decoder(source_schema(source))


def _check_columns(plan: ResolvedPlan, source: PlannedSource) -> None:
    """Check that events are decoded into the types for which the program is made."""
    schema = decoder_of(source).columns.schema
    for one in plan.columns:
        wanted = known(one.kind)
        if wanted is None:
            continue
        name = str(one.text)
        if name not in schema.names or schema.field(name).type != wanted:
            refuse(f"the column {name} of the source {source.name}")
