"""List the reasons that are no failures."""

from __future__ import annotations

from typing import Final

from sluice.core.catalogue.reason import (
    ARCHIVE,
    ARCHIVING,
    COPIES,
    COPY,
    DRIVEN,
    EPHEMERAL,
    QUERY,
    SCOPE,
    STORE,
    Reason,
    ReasonPlace,
)

NORMAL: Final = (
    Reason("Reachable", STORE, "The store answers and knows the user."),
    Reason(
        "Mountable",
        STORE,
        "The volume's PersistentVolumeClaim exists. Only pods that mount it can read the volume.",
    ),
    Reason(
        "InUse",
        STORE,
        "The StreamStore was deleted. It stays until the copies, schedules and streams that need "
        "it are done or deleted.",
    ),
    Reason(
        "Starting",
        (*DRIVEN, *QUERY),
        "The attempt's driver starts. The plan of a copy is written; a query has no batch yet.",
    ),
    Reason(
        "Running",
        QUERY,
        "The query runs, and has written a batch. How far it is stands in `status.progress`.",
    ),
    Reason(
        "Restarting",
        QUERY,
        "The spec was changed. The driver is being stopped, and the next one has the new spec.",
    ),
    Reason(
        "Completed",
        QUERY,
        "With mode: Once: all that the sources had when the query began is in its results.",
        ends=True,
    ),
    Reason(
        "HookRunning",
        COPIES,
        "A Job of `spec.hooks` runs. The copy goes on when it has ended.",
        "Nothing. The Job's name is in the message, and its time limit in spec.hooks.",
        place=ReasonPlace.HOOKS,
    ),
    Reason(
        "HookSucceeded",
        COPIES,
        "The Jobs of `spec.hooks` that were due have succeeded.",
        place=ReasonPlace.HOOKS,
    ),
    Reason("Copying", COPIES, "A driver stages bytes. Readers cannot see them yet."),
    Reason(
        "Verifying",
        DRIVEN,
        "All bytes are staged, or in the archive. The driver reads them again and compares them.",
    ),
    Reason(
        "CatchingUp",
        COPIES,
        "With mode: Continuous: what the source had is copied, or how far the target is behind is "
        "not known yet.",
    ),
    Reason(
        "Following",
        COPIES,
        "The target is behind its source by no more than spec.lagObjectiveSeconds. What came is in "
        "the target at once, and is compared within seconds: status.follow.provedTo says up to "
        "where. For a scope this holds for each stream that is followed. The message names the "
        "others, which failed or are gone.",
        "Nothing. If the message names streams, see `status.failedStreams`.",
    ),
    Reason(
        "Lagging",
        COPIES,
        "The target is behind its source by more than spec.lagObjectiveSeconds. Of a scope, a "
        "target is; `status.follow.worst` names those that are behind most.",
        "If it lasts, see whether spec.limits or a store holds the copy up, and whether its pod "
        "runs.",
        warning=True,
    ),
    Reason(
        "StreamFailed",
        SCOPE,
        "With mode: Continuous: streams have failed, or are gone from the source, and are followed "
        "no more. The others go on.",
        "See `status.failedStreams`. Their targets stay as far as they have come.",
        warning=True,
        place=ReasonPlace.EVENT,
    ),
    Reason(
        "Draining",
        COPIES,
        "The cutover is asked for, and what the source still has is followed.",
        "With cutover: Drain, stop the writers. With SealAndDrain, nothing.",
    ),
    Reason(
        "Proving",
        COPIES,
        "The end of following is recorded. The rest is compared, and the target gets its final "
        "configuration.",
    ),
    Reason(
        "WaitingForReaders",
        COPY,
        "The target is complete, and a group of spec.readerGroups cannot be made in it yet.",
        "Close the readers of the group in the source, or remove it from spec.readerGroups. The "
        "message names it.",
    ),
    Reason(
        "CutOver",
        COPIES,
        "The target has all that the source had, and was compared; of a scope, each target. "
        "Readers and writers can move.",
        "Have readers and writers use the target. See `status.cutover`.",
        ends=True,
    ),
    Reason(
        "ProvedTo",
        COPIES,
        "All that was published, and all that came until status.follow.provedTo, was compared.",
        place=ReasonPlace.VERIFIED,
    ),
    Reason(
        "CameLive",
        COPIES,
        "The driver has copied what was planned, and another attempt follows the source.",
        place=ReasonPlace.HISTORY,
    ),
    Reason(
        "FarBehind",
        COPIES,
        "The target was far behind its source for a minute (`profiles.*.catchUpFrom`). A driver "
        "stages, verifies and merges what is missing in place of the follower, which then goes on.",
        place=ReasonPlace.HISTORY,
    ),
    Reason("Publishing", COPIES, "The target has all bytes. The driver cleans up."),
    Reason(
        "Scheduled",
        ARCHIVING,
        "The first run is not due yet; status.nextRunTime has its time.",
    ),
    Reason(
        "Archiving",
        ARCHIVING,
        "A driver writes new bytes. Readers see them once the run is recorded.",
    ),
    Reason(
        "Archived",
        ARCHIVE,
        "The last run that was due is recorded and can be restored.",
        ends=True,
    ),
    Reason(
        "ArchivedWithGaps",
        ARCHIVE,
        "As `Archived`, but the source had lost bytes before they were read "
        "(`onTruncation: Record`).",
        "See `status.gaps`. Archive more often, or lengthen the source's retention.",
        ends=True,
    ),
    Reason(
        "Copied",
        COPY,
        "The target is complete and was verified before it was published.",
        ends=True,
    ),
    Reason(
        "CopiedWithGaps",
        COPY,
        "As `Copied`, but the source had lost bytes before they were read "
        "(`onTruncation: Record`).",
        "See `status.gaps`. A longer retention of the source gives a copy more time.",
        ends=True,
    ),
    Reason(
        "Succeeded",
        SCOPE,
        "Every selected stream is complete: copied and verified before it was published, or "
        "archived and read back.",
        ends=True,
    ),
    Reason(
        "PartiallySucceeded",
        SCOPE,
        "Some streams are complete. Others could not be copied or were not begun "
        "(`failurePolicy: Stop`).",
        "See `status.failedStreams` and correct the causes. Then annotate the resource with "
        "sluice.dev/requestedAt to copy the missing streams.",
        warning=True,
    ),
    Reason(
        "Failed",
        SCOPE,
        "No stream could be copied.",
        "As for `PartiallySucceeded`.",
        warning=True,
    ),
    Reason(
        "DigestsMatch",
        COPIES,
        "The staged bytes equal the source's, byte for byte.",
        place=ReasonPlace.VERIFIED,
    ),
    Reason(
        "ReadBack",
        ARCHIVING,
        "The bytes that the last run added were read back and equal the source's.",
        place=ReasonPlace.VERIFIED,
    ),
    Reason(
        "DrillPassed",
        ARCHIVE,
        "The last restore drill restored a run to a scratch stream. All bytes were read back and "
        "equal the archive's.",
        place=ReasonPlace.RESTORE_VERIFIED,
    ),
    Reason(
        "DrillNotRun",
        ARCHIVE,
        "The last restore drill was not carried out. It has found nothing wrong with the archive.",
        "Correct what the message names: mostly rights, a store that does not answer, or a drill "
        "that takes longer than the time between two drills.",
        warning=True,
        place=ReasonPlace.RESTORE_VERIFIED,
    ),
    Reason(
        "ResultsMatch",
        QUERY,
        "The last verification computed the results anew by another engine, and found the same "
        "rows in each sink.",
        place=ReasonPlace.VERIFIED,
    ),
    Reason(
        "ResultsDiffer",
        QUERY,
        "The last verification found rows missing in a sink, or too many. `status.verification` "
        "has the numbers.",
        "Run `sluice query verify`, which shows some of these rows. Rows that another program "
        "wrote into a sink are too many. Else report it.",
        warning=True,
        place=ReasonPlace.VERIFIED,
    ),
    Reason(
        "ResultsInconclusive",
        QUERY,
        "The last verification found rows that differ, and the query has left out late events, "
        "which the other engine counts. So the results may be right.",
        "Set a longer `latenessSeconds` in the next version of the query if this matters.",
        place=ReasonPlace.VERIFIED,
    ),
    Reason(
        "VerificationNotRun",
        QUERY,
        "The last verification compared nothing, which says nothing about the results.",
        "Correct what the message names: mostly a stream that has lost events which the query has "
        "read, a query that the other engine cannot compute, or too little time or memory.",
        warning=True,
        place=ReasonPlace.VERIFIED,
    ),
    Reason(
        "Suspended",
        (*DRIVEN, *EPHEMERAL, *QUERY),
        "The operator runs, makes and releases nothing. Staged bytes, streams and the checkpoint "
        "of a query stay.",
        "Set spec.suspend to false to continue.",
    ),
    Reason(
        "Stopping",
        (*DRIVEN, *QUERY),
        "The driver is being stopped. Staged bytes, and the checkpoint of a query, stay.",
    ),
    Reason(
        "SpecChanged",
        DRIVEN,
        "spec.runtime was changed before the attempt's driver ran, or it was changed, or Sluice "
        "was upgraded, while the attempt followed a source. Another attempt replaced it.",
        place=ReasonPlace.HISTORY,
    ),
    Reason(
        "Deleting",
        (*DRIVEN, *EPHEMERAL, *QUERY),
        "The resource was deleted. The operator stops its driver, deletes staged bytes and "
        "releases streams. It deletes the archive if `onDelete` says so. The results of a query "
        "stay.",
    ),
    Reason(
        "Orphaned",
        (*DRIVEN, *EPHEMERAL),
        "The resource is gone, but left staged bytes, streams or an archive in a store.",
        "When the store answers again, delete staged bytes with `sluice abort`, and streams with "
        "`sluice streams stale --delete`. Delete an archive by its path.",
        warning=True,
        place=ReasonPlace.EVENT,
    ),
    Reason(
        "ArchiveKept",
        ARCHIVE,
        "The resource was deleted with `onDelete: Delete`, but its archive stays: other resources "
        "may have runs there, or the StreamStore's `access` forbids deletion. Or the archive is "
        "deleted, and foreign objects stay in its folders.",
        "See with `sluice archive inspect` which resource made a run. If the rest is no longer "
        "needed, delete it by its path.",
        place=ReasonPlace.EVENT,
    ),
    Reason(
        "WaitingForOwner",
        EPHEMERAL,
        "No owner exists yet, so no stream is made.",
        "Apply an owner, or correct spec.owners.",
    ),
    Reason("Making", EPHEMERAL, "The operator makes or adopts the stream, or marks the prefix."),
    Reason("Configuring", EPHEMERAL, "The operator applies spec.config to the stream."),
    Reason("Claimed", EPHEMERAL, "The resource owns the streams that exist."),
    Reason(
        "StreamMissing",
        EPHEMERAL,
        "Another program deleted the stream with its events. The operator makes it again.",
        "Find out which program deletes streams of Sluice.",
        warning=True,
    ),
    Reason(
        "ConfigDrifted",
        EPHEMERAL,
        "Another program changed the stream's configuration.",
        "Change spec.config, or annotate the resource with sluice.dev/requestedAt to change the "
        "stream back.",
        place=ReasonPlace.DRIFTED,
    ),
    Reason(
        "Conflict",
        EPHEMERAL,
        "An older resource, or another one that has the stream, claims the same streams.",
        "Delete one of the two resources, or name other streams.",
        warning=True,
    ),
    Reason(
        "OwnersDeleted",
        EPHEMERAL,
        "The owners are gone. Kubernetes' garbage collector deletes the resource next.",
    ),
    Reason(
        "OwnerOrphaned",
        EPHEMERAL,
        "The owners were deleted with --cascade=orphan, so the streams stay.",
        "Make an owner again, which takes over the streams, or delete the resource.",
        warning=True,
    ),
    Reason(
        "GracePeriod",
        EPHEMERAL,
        "No owner needs the streams. A successor may still take them over.",
    ),
    Reason(
        "StillRead",
        EPHEMERAL,
        "Copies still read the streams. They are released afterwards, or after an hour.",
    ),
    Reason(
        "Releasing",
        EPHEMERAL,
        "The operator releases the streams. The resource stays.",
    ),
    Reason(
        "Released",
        EPHEMERAL,
        "The streams were released for good. The operator makes no stream again.",
        "Nothing; the resource can be deleted.",
        ends=True,
    ),
)
