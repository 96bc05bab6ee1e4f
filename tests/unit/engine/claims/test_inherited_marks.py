"""A target inherits no mark of Sluice from its source."""

import pytest

from sluice.core.claims.claim import Claim, Claimant, Ownership, is_ephemeral
from sluice.core.copy.plan import StreamPlan
from sluice.core.values import identity
from sluice.core.values.model import (
    RetentionType,
    ScaleType,
    Scaling,
    StreamConfig,
    StreamRetention,
)
from sluice.engine.archive.planning import resolve_archive
from sluice.engine.claims import claims, ownership, scope_lifecycle
from sluice.engine.claims.stale import Tagged, drop, stale
from sluice.engine.tasks.executor import InlineExecutor
from sluice.errors import SourceUnsupported, StreamExists
from support.archiving.archive_runs import REQUEST as ARCHIVE
from support.archiving.archive_runs import last_run, root_of
from support.archiving.archives import take
from support.archiving.restore_env import Env
from support.engine.appends import APPEND, appended, put_target, run_append
from support.engine.plans import COPY, SOURCE, TARGET
from support.engine.runners import archive_runner
from support.engine.sources import ManualClock, copy_all, planned, put_source, split
from support.model import ModelStore, World
from support.model.memory_objects import MemoryObjects

UID = "0b1d9c8e-0000-4000-8000-000000000001"
OWNER = Claimant(cluster="here", namespace="team", name="app", uid=UID, created=0)
OTHER = "ee" * 16
KEPT = StreamRetention(type=RetentionType.SIZE, minimum=5)
OWN = Scaling(type=ScaleType.BY_BYTES, target_rate=100, scale_factor=2, min_segments=2)
LOOSE = Scaling(type=ScaleType.BY_EVENTS, target_rate=2_000_000_000, scale_factor=2, min_segments=1)
NOTE = f"{identity.TAG_APPENDING}{OTHER}/ByBytesPerSecond/100/2/2"


@pytest.fixture(autouse=True)
def _nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scope_lifecycle, "_gates", {})


@pytest.fixture
def world() -> World:
    """Return a store with a source of two segments."""
    made = World()
    put_source(made, [40], [40])
    return made


def owned_source(world: World) -> ModelStore:
    """Let an EphemeralStream own the source."""
    world.streams[SOURCE].config = StreamConfig(tags=(*OWNER.tags(), "team=a"), retention=KEPT)
    return ModelStore(world)


def recorded_before(plan: StreamPlan, config: StreamConfig) -> StreamPlan:
    """Return a plan as recorded by versions that kept the source's whole configuration."""
    return plan.model_copy(update={"config": config})


def test_a_copy_has_its_sources_tags_and_no_mark_of_sluice(world: World) -> None:
    """Marks of an EphemeralStream, another copy or an append belong to the source alone."""
    marks = (
        *OWNER.tags(),
        *identity.owner_tags(OTHER),
        identity.TAG_COMPLETE + "d1",
        NOTE,
        "sluice.dev/of-a-later-version=1",
    )
    world.streams[SOURCE].config = StreamConfig(tags=("team=a", *marks))
    store = ModelStore(world)
    plan = planned(store)
    assert plan.config.tags == ("team=a",)
    copy_all(store, plan)
    tags = world.streams[TARGET].config.tags
    digest = identity.completed(tags, COPY)
    assert set(tags) == {
        "team=a",
        *identity.owner_tags(COPY),
        f"{identity.TAG_COMPLETE}{digest}",
    }


def test_a_plan_of_before_is_gone_on_with_and_makes_no_heir(world: World) -> None:
    """The plan keeps its hash, by which resources and journals know it. Its target has no mark."""
    store = owned_source(world)
    config = StreamConfig(tags=("team=a", *OWNER.tags(), NOTE), scaling=LOOSE)
    plan = recorded_before(planned(store), config)
    assert StreamPlan.model_validate_json(plan.model_dump_json()).hash == plan.hash
    copy_all(store, split(plan))
    found = world.streams[TARGET].config
    assert [tag for tag in found.tags if not tag.startswith("sluice.dev/")] == ["team=a"]
    assert not is_ephemeral(found.tags)
    assert not any(tag.startswith(identity.TAG_APPENDING) for tag in found.tags)
    assert found.scaling == OWN


def test_a_copy_outlives_the_resource_of_its_source(world: World) -> None:
    """The EphemeralStream's stream is deleted with it, and its copy is not a stale stream."""
    store = owned_source(world)
    copy_all(store, planned(store))
    claim = Claim(claimant=OWNER, scope=SOURCE.scope, stream=SOURCE.stream)
    assert claims.release(claim, store, delete=True) == 1
    assert stale(store, "here", set()) == []
    assert set(world.streams) == {TARGET}


def test_what_a_copy_made_before_with_an_owners_marks_is_no_leftover(world: World) -> None:
    """The copy's own mark shows its owner: the target is neither listed, dropped nor released."""
    store = ModelStore(world)
    copy_all(store, planned(store))
    made = world.streams[TARGET].config
    world.streams[TARGET].config = made.model_copy(update={"tags": (*made.tags, *OWNER.tags())})
    before = world.streams[TARGET].config
    assert stale(store, "here", set()) == []
    listed = Tagged(TARGET.scope, TARGET.stream, None, "team/app", UID, (TARGET.stream,))
    assert drop(listed, store, "here") == 0
    claim = Claim(claimant=OWNER, scope=TARGET.scope, stream=TARGET.stream)
    assert claims.release(claim, store, delete=True) == 0
    assert claims.release(claim, store, delete=False) == 0
    assert world.streams[TARGET].config == before


def test_what_a_copy_made_is_adopted_by_nobody(world: World) -> None:
    """A successor adopts its predecessor's stream, but no copy of it."""
    store = ModelStore(world)
    copy_all(store, planned(store))
    made = world.streams[TARGET].config
    world.streams[TARGET].config = made.model_copy(update={"tags": (*made.tags, *OWNER.tags())})
    before = world.streams[TARGET].config
    later = Claimant(
        cluster="here", namespace="team", name="app", uid=UID.replace("1", "2"), created=5
    )
    claim = Claim(claimant=later, scope=TARGET.scope, stream=TARGET.stream)
    found = claims.look(claim, store)
    assert (found.ownership, found.holder_uid) == (Ownership.OTHERS, None)
    with pytest.raises(StreamExists, match="StreamCopy"):
        claims.adopt(claim, store, UID)
    assert ownership.one(claim, store).ownership is Ownership.OTHERS
    assert world.streams[TARGET].config == before


def test_a_source_that_is_appended_to_lends_its_own_policy(world: World) -> None:
    """The target does not get the policy that holds while another copy opens transactions."""
    world.streams[SOURCE].config = StreamConfig(tags=("team=a", NOTE), scaling=LOOSE)
    store = ModelStore(world)
    copy_all(store, planned(store))
    assert world.streams[TARGET].config.scaling == OWN


@pytest.mark.parametrize(
    "note",
    [
        f"{identity.TAG_APPENDING}{OTHER}",
        f"{identity.TAG_APPENDING}{OTHER}/Fixed/0/0",
        f"{identity.TAG_APPENDING}{OTHER}/Fixed/0/0/0",
        f"{identity.TAG_APPENDING}{OTHER}/Fixed/0/0/-1",
        f"{identity.TAG_APPENDING}{OTHER}/Fixed/0/0/{'9' * 40}",
        f"{identity.TAG_APPENDING}{OTHER}/None/0/0/1",
        f"{identity.TAG_APPENDING}x/Fixed/0/0/1",
        f"{identity.TAG_APPENDING}{OTHER}/Fixed/0/0/1/1",
    ],
)
def test_a_note_that_is_none_says_nothing_of_a_policy(world: World, note: str) -> None:
    """Any client can write a tag, so only a valid note tells the former policy."""
    world.streams[SOURCE].config = StreamConfig(tags=(note,), scaling=LOOSE)
    plan = planned(ModelStore(world))
    assert (plan.config.tags, plan.config.scaling) == ((), LOOSE)


def test_a_policy_that_was_given_since_is_the_streams_own(world: World) -> None:
    """A leftover note does not override a policy that a user has set since."""
    given = Scaling(min_segments=2)
    world.streams[SOURCE].config = StreamConfig(tags=(NOTE,), scaling=given)
    assert planned(ModelStore(world)).config.scaling == given


def test_a_target_with_somebody_elses_note_is_appended_to() -> None:
    """The target gets its own policy back, and the outdated note is removed."""
    world = World()
    put_source(world, [40])
    put_target(world, 3)
    own = Scaling(min_segments=3)
    note = f"{identity.TAG_APPENDING}{OTHER}/Fixed/0/0/3"
    world.streams[TARGET].config = StreamConfig(tags=("team=b", note), scaling=own)
    store = ModelStore(world)
    assert run_append(APPEND, store, ManualClock()) == "Copied"
    assert appended(world, world.bytes_of(SOURCE)) == [1]
    found = world.streams[TARGET].config
    assert (found.tags, found.scaling) == (("team=b",), own)


@pytest.mark.parametrize(("count", "ours"), [(124, 0), (124, 3), (125, 0), (127, 0)])
def test_a_source_whose_tags_leave_no_place_for_ours_is_refused(
    world: World, count: int, ours: int
) -> None:
    """A store takes 127 tags, and a target that could not be marked whole would stay for good."""
    tags = (*(f"tag-{number}" for number in range(count)), *OWNER.tags()[:ours])
    config = StreamConfig(tags=tags)
    world.streams[SOURCE].config = config
    if count == 124:
        copy_all(ModelStore(world), planned(ModelStore(world)))
        assert len(world.streams[TARGET].config.tags) == 127
        return
    with pytest.raises(SourceUnsupported, match=f"{count} tags") as refused:
        planned(ModelStore(world))
    assert refused.value.field == "spec.source.stream"
    assert TARGET not in world.streams
    put_target(world, 2)
    assert run_append(APPEND, ModelStore(world), ManualClock()) == "Copied"


@pytest.mark.parametrize("old", [False, True])
def test_an_archive_has_its_streams_tags_and_no_mark_of_sluice(world: World, *, old: bool) -> None:
    """A stream restored months later has another owner. So has a run planned earlier."""
    store, objects = owned_source(world), MemoryObjects()
    root = root_of(objects)
    plan = resolve_archive(ARCHIVE, store, root.archive(ARCHIVE.path)).plan
    assert plan is not None
    if old:
        plan = plan.model_copy(update={"config": world.streams[SOURCE].config})
    (report,) = archive_runner(
        plan, sources=[store], root=root, executor=InlineExecutor([store], root)
    ).run()
    assert report.error is None
    assert last_run(objects).config.tags == ("team=a",)


def test_a_run_of_before_is_restored_without_the_marks_it_has() -> None:
    """Archives keep their tags, but the former owner does not own the restored stream."""
    env = Env()
    env.source.write([10, 20])
    take(env.archive, env.form, env.source, config=StreamConfig(tags=("team=a", *OWNER.tags())))
    assert set(OWNER.tags()) <= set(last_run(env.objects).config.tags)
    assert env.restore().outcome == "Copied"
    tags = env.world.streams[TARGET].config.tags
    assert "team=a" in tags
    assert not is_ephemeral(tags)
