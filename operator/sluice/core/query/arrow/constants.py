"""Compute casts of constants before a query runs."""

from __future__ import annotations

from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import Final

from sluice.core.query.arrow.kinds import WHOLE, digits
from sluice.core.query.arrow.terms import Term

_EXACT: Final = Context(prec=38, traps=[Inexact, InvalidOperation])
_BITS: Final = dict(zip(WHOLE, (8, 16, 32, 64), strict=True))


def folded(term: Term) -> Term:
    """Return an expression in which constants have the types to which they are cast.

    Casts that would change a value stay. Doubles are rounded as Java rounds.
    """
    parts = tuple(map(folded, term.parts))
    if term.name == "Cast" and parts[0].name == "Literal":
        text = parts[0].text
        if text is None:
            return Term("Literal", term.kind, text=None)
        if _is_number(parts[0].kind):
            value = _cast(Decimal(text), term.kind)
            if value is not None:
                return Term("Literal", term.kind, text=value)
    return term._replace(parts=parts)


def _is_number(kind: str) -> bool:
    return kind in WHOLE or digits(kind) is not None


def _cast(value: Decimal, kind: str) -> str | None:
    """Return the text of a number of another type; None if the type has not this number."""
    if kind == "double":
        return repr(float(value))
    bits = _BITS.get(kind)
    if bits is not None:
        fits = value == int(value) and -(1 << bits - 1) <= value < 1 << bits - 1
        return str(int(value)) if fits else None
    decimal = digits(kind)
    if decimal is None:
        return None
    try:
        exact = value.quantize(Decimal(1).scaleb(-decimal[1]), context=_EXACT)
    except (Inexact, InvalidOperation):
        return None
    return str(exact) if len(exact.as_tuple().digits) <= decimal[0] else None
