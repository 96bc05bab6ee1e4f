"""Say what a query may consist of.

A query is written by a tenant and runs with the rights of an engine. So what is not listed here is
refused. Spark does work while it resolves names: it reads files for `FROM parquet.'/path'`, loads
classes for `reflect(...)`, and carries out `SET` or `CREATE VIEW`. So the text is checked as it was
parsed, before Spark resolves anything.

Functions are listed if their result follows from their arguments alone, whatever the order of the
events. So a batch that is repeated gives the same rows. `first`, `collect_list`, `rand`, `uuid` or
`current_timestamp` are not among them.
"""

from __future__ import annotations

from typing import Final


def _listed(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


PARSED_PLANS: Final = _listed(
    """
    Aggregate CTERelationDef Distinct Filter Generate Join LocalRelation Project
    SubqueryAlias Union UnresolvedHaving UnresolvedInlineTable UnresolvedRelation
    UnresolvedSubqueryColumnAliases UnresolvedWith
    """
)
"""Relations of a parsed text, by the simple names of Spark's classes."""

RESOLVED_PLANS: Final = _listed(
    """
    Aggregate CollectMetrics CTERelationDef CTERelationRef Distinct EventTimeWatermark Expand Filter
    Generate Join LocalRelation Project StreamingRelationV2 SubqueryAlias Union View WithCTE
    """
)
"""Relations of a plan whose names are resolved."""

EXPRESSIONS: Final = _listed(
    """
    Add Alias And AttributeReference Between BitwiseAnd BitwiseNot BitwiseOr BitwiseXor
    CaseWhen Cast Concat CreateArray CreateNamedStruct CreateStruct Cube Divide
    EqualNullSafe EqualTo GreaterThan GreaterThanOrEqual GroupingSets If In InSubquery
    IntegralDivide IsNotNull IsNotUnknown IsNull IsUnknown LambdaFunction LessThan
    LessThanOrEqual Like LikeAll LikeAny ListQuery Literal Multiply NamedParameter Not
    NotLikeAll NotLikeAny Or Overlay RLike Remainder Rollup ShiftLeft ShiftRight
    ShiftRightUnsigned StringLocate StringTrim StringTrimBoth StringTrimLeft StringTrimRight
    Substring Subtract UnaryMinus UnaryPositive UnresolvedAlias UnresolvedAttribute
    UnresolvedExtractValue UnresolvedFunction UnresolvedGenerator
    UnresolvedNamedLambdaVariable UnresolvedStar
    """
)
"""Expressions of a parsed text. Functions have a class of their own, and are listed below."""

OF_THE_MOMENT: Final = _listed(
    """
    CurDate CurrentCatalog CurrentDatabase CurrentDate CurrentTime CurrentTimestamp
    CurrentUser LocalTimestamp Now
    """
)
"""Expressions that a text can have without parentheses, as if they were columns: `current_date`,
`user`. They tell the time or the user, and have no place in a plan whose names are resolved."""

FUNCTIONS: Final = (
    # numbers
    _listed(
        """
        abs acos acosh asin asinh atan atan2 atanh bin bit_count bit_get bround cbrt ceil
        ceiling conv cos cosh cot csc degrees div e exp expm1 factorial floor getbit greatest
        hex hypot isnan least ln log log10 log1p log2 mod nanvl negative pi pmod positive pow
        power radians rint round sec shiftleft shiftright shiftrightunsigned sign signum sin
        sinh sqrt tan tanh try_add try_divide try_mod try_multiply try_subtract unhex
        width_bucket
        """
    )
    # texts and bytes
    | _listed(
        """
        ascii base64 bit_length btrim char char_length character_length chr concat concat_ws
        contains crc32 decode elt encode endswith find_in_set format_number format_string hash
        initcap instr is_valid_utf8 lcase left len length levenshtein locate lower lpad ltrim
        luhn_check make_valid_utf8 mask md5 octet_length overlay parse_url position printf
        regexp regexp_count regexp_extract regexp_extract_all regexp_instr regexp_like
        regexp_replace regexp_substr repeat replace reverse right rpad rtrim sentences sha sha1
        sha2 soundex space split split_part startswith substr substring substring_index
        to_binary to_char to_number to_varchar translate trim try_parse_url try_to_binary
        try_to_number try_url_decode try_validate_utf8 ucase unbase64 upper url_decode
        url_encode validate_utf8 xxhash64
        """
    )
    # time
    | _listed(
        """
        add_months date_add date_diff date_format date_from_unix_date date_part date_sub
        date_trunc dateadd datediff datepart day dayname dayofmonth dayofweek dayofyear extract
        from_unixtime from_utc_timestamp hour last_day make_date make_dt_interval make_interval
        make_timestamp make_timestamp_ltz make_timestamp_ntz make_ym_interval minute month
        monthname months_between next_day quarter second session_window timestamp_micros
        timestamp_millis timestamp_seconds timestampadd timestampdiff to_date to_timestamp
        to_timestamp_ltz to_timestamp_ntz to_unix_timestamp to_utc_timestamp trunc
        try_to_timestamp unix_date unix_micros unix_millis unix_seconds weekday weekofyear
        window window_time year
        """
    )
    # conditions and types
    | _listed(
        """
        between bigint binary boolean cast coalesce date decimal double equal_null float if
        ifnull ilike in int isnotnull isnull like not nullif nullifzero nvl nvl2 rlike smallint
        string timestamp tinyint typeof when zeroifnull
        """
    )
    # structures
    | _listed(
        """
        aggregate array array_append array_compact array_contains array_distinct array_except
        array_insert array_intersect array_join array_max array_min array_position array_prepend
        array_remove array_repeat array_size array_sort array_union arrays_overlap arrays_zip
        cardinality element_at exists explode explode_outer filter flatten forall
        get get_json_object inline inline_outer json_array_length json_object_keys
        json_tuple map map_concat map_contains_key map_entries map_filter map_from_arrays
        map_from_entries map_keys map_values map_zip_with named_struct posexplode
        posexplode_outer reduce sequence size slice sort_array stack str_to_map struct to_csv
        to_json transform transform_keys transform_values try_element_at zip_with
        """
    )
    # aggregates, whose result does not depend on the order of the rows
    | _listed(
        """
        any approx_count_distinct avg bit_and bit_or bit_xor bool_and bool_or corr count
        count_if covar_pop covar_samp every grouping grouping_id kurtosis max mean median min
        percentile regr_avgx regr_avgy regr_count regr_intercept
        regr_r2 regr_slope regr_sxx regr_sxy regr_syy skewness some std stddev stddev_pop
        stddev_samp sum try_avg try_sum var_pop var_samp variance
        """
    )
)
"""Functions, in small letters."""

WORDS: Final = {
    "AggregateExpression": "first, last or any_value, which depend on the order of the events",
    "Exists": "a subquery in a condition",
    "GlobalLimit": "LIMIT",
    "LocalLimit": "LIMIT",
    "Offset": "OFFSET",
    "OneRowRelation": "a SELECT without FROM",
    "PipeOperator": "|>",
    "Pivot": "PIVOT",
    "RelationTimeTravel": "VERSION AS OF",
    "Sample": "TABLESAMPLE",
    "ScalarSubquery": "a subquery as a value",
    "ScriptTransformation": "TRANSFORM ... USING",
    "Sort": "ORDER BY",
    "UnresolvedHint": "a hint",
    "UnresolvedTableValuedFunction": "a function as a table",
    "Unpivot": "UNPIVOT",
    "WindowExpression": "OVER (...)",
    "WithWindowDefinition": "WINDOW",
    "UnresolvedEventTimeWatermark": "WATERMARK, which eventTime of a source sets",
}
"""The words of SQL for some of Spark's classes."""
