"""Print what users see: tables, a progress bar, errors with their remedy.

Text goes to stderr. Only results go to stdout, so that `--output json` can be piped.
"""

from sluice.console.archives import (
    show_archive_verification,
    show_archives,
    show_inspection,
)
from sluice.console.archiving import archive_plan, show_archive_report, show_retained
from sluice.console.copies import outcome_word, plan_table, report_table, show_report, summary
from sluice.console.description import show_description
from sluice.console.following import left, until
from sluice.console.grid import Column, Grid
from sluice.console.logs import readable
from sluice.console.overview import by_state, show_overview
from sluice.console.page import (
    Words,
    duration,
    err,
    hush,
    note,
    out,
    printable,
    show_error,
    show_failed,
    show_trouble,
)
from sluice.console.progress import LiveProgress, ReadProgress
from sluice.console.scopes import (
    parts_of,
    renames_of,
    scope_plan,
    show_scope_report,
)
from sluice.console.streams import show_scopes, show_stream, show_streams
from sluice.console.tables import show_tables
from sluice.console.verification import show_verification, verification_table
from sluice.console.watching import Watching

__all__ = [
    "Column",
    "Grid",
    "LiveProgress",
    "ReadProgress",
    "Watching",
    "Words",
    "archive_plan",
    "by_state",
    "duration",
    "err",
    "hush",
    "left",
    "note",
    "out",
    "outcome_word",
    "parts_of",
    "plan_table",
    "printable",
    "readable",
    "renames_of",
    "report_table",
    "scope_plan",
    "show_archive_report",
    "show_archive_verification",
    "show_archives",
    "show_description",
    "show_error",
    "show_failed",
    "show_inspection",
    "show_overview",
    "show_report",
    "show_retained",
    "show_scope_report",
    "show_scopes",
    "show_stream",
    "show_streams",
    "show_tables",
    "show_trouble",
    "show_verification",
    "summary",
    "until",
    "verification_table",
]
