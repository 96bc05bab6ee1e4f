"""What a store that is only read says to whoever would change something in it."""

from __future__ import annotations

from typing import NoReturn

from sluice.errors import StoreRejected


class ReadOnly:
    """The part of `sluice.stores.base.Store` that changes a stream, or prepares for that."""

    def _refuse(self, *_args: object, **_named: object) -> NoReturn:
        """Refuse a call."""
        raise StoreRejected(
            f"{self!r} is only read: archives are changed by recording a run",
            remedy="Name a store that holds live streams as the target.",
        )

    # Segments
    set_attribute = create = seal = delete = merge = appender = append_at = _refuse

    # Streams
    create_scope = delete_scope = create_stream = update_stream = scale = _refuse
    truncate_stream = seal_stream = delete_stream = _refuse

    # Transactions and reader groups
    open_transaction = keep_transaction = commit_transaction = abort_transaction = _refuse
    transaction = settled = create_reader_group = _refuse

    # Names of what would be made
    following = staging_name = is_beside = write_cut = read_cut = _refuse
