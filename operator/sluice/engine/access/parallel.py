"""Ask a store about many streams, several at a time."""

from __future__ import annotations

from concurrent.futures import CancelledError, ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, TypeVar

from sluice.engine.access import survey
from sluice.stores.allowance import apart
from sluice.stores.deadline import carried

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence

AT_ONCE: Final = 16
"""Most calls at a time. With more of them, a store hardly answers faster."""

_A = TypeVar("_A")
_T = TypeVar("_T")


def each(call: Callable[[_A], _T], these: Sequence[_A]) -> list[_T]:
    """Call a function for each item, several at a time. Return the results, which are small.

    Once a call has raised, no other call begins: a store that is away is not asked thousands of
    times.

    Args:
        call: the function.
        these: the items.

    Returns:
        The results, in the items' order.

    Raises what the first failing call raises.
    """
    if len(these) <= 1:
        return [call(one) for one in these]
    errors: list[BaseException] = []

    def begin(one: _A) -> _T:
        if errors:  # check here: the thread that waits for results may see the error much later
            raise CancelledError
        try:
            return call(one)
        except BaseException as error:
            errors.append(error)
            raise

    with ThreadPoolExecutor(min(AT_ONCE, len(these)), thread_name_prefix="scope") as pool:
        coming = [pool.submit(carried(apart(begin)), one) for one in these]
        try:
            return [one.result() for one in coming]
        except CancelledError:
            raise errors[0] from None
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def each_once(
    step: str, call: Callable[[_A], _T], these: Sequence[_A], *, key: Callable[[_A], Hashable]
) -> list[_T]:
    """Call as `each` does, but reuse results of an earlier planning that was cut off.

    Args:
        step: name of the call in the survey.
        call: the function.
        these: the items.
        key: returns an item's key in the survey.

    Returns:
        The results, in the items' order.
    """
    known = survey.current()

    def find(one: _A) -> None:
        known[step, key(one)] = call(one)

    each(find, [one for one in these if (step, key(one)) not in known])
    return [known[step, key(one)] for one in these]


def batches(these: Sequence[_A], most: int) -> Iterator[Sequence[_A]]:
    """Cut a sequence into pieces of at most `most` items."""
    return (these[at : at + most] for at in range(0, len(these), most))
