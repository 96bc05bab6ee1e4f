"""Asking a store about many streams, several at a time."""

from __future__ import annotations

from concurrent.futures import CancelledError, ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, TypeVar

from sluice.engine.access import survey
from sluice.stores.allowance import apart
from sluice.stores.deadline import carried

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence

AT_ONCE: Final = 16
"""Streams that are asked about at a time. A store answers more of them at once hardly faster."""

_A = TypeVar("_A")
_T = TypeVar("_T")


def each(call: Callable[[_A], _T], these: Sequence[_A]) -> list[_T]:
    """Call for several at a time; the outcomes, which are small, in order.

    Once a call has raised, no other one is begun: a store that is away need not be asked thousands
    of times.
    """
    if len(these) <= 1:
        return [call(one) for one in these]
    errors: list[BaseException] = []

    def begin(one: _A) -> _T:
        if errors:  # seen here: the thread that waits for the outcomes may see it much later
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
    """The same, without those of which an earlier look knows the outcome that was cut off.

    Args:
        step: names the call, for whoever goes on.
        call: the call.
        these: what it is made for.
        key: tells these apart.
    """
    known = survey.current()

    def find(one: _A) -> None:
        known[step, key(one)] = call(one)

    each(find, [one for one in these if (step, key(one)) not in known])
    return [known[step, key(one)] for one in these]


def batches(these: Sequence[_A], most: int) -> Iterator[Sequence[_A]]:
    """The same, so many together."""
    return (these[at : at + most] for at in range(0, len(these), most))
