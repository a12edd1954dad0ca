"""The map of a library: drawn in the background, kept, read through the one predicate."""

import subprocess
import sys

import numpy as np
import pytest
from sqlalchemy import Text, cast, func, literal_column, select, text
from sqlalchemy import table as sql_table

from memcore.errors import NotFound
from memcore.models import Actor, Draft, MemoryType, Role, Scope, Status, Subject, Visibility
from memcore.projection import MapSettings
from memcore.services.memories import Filter

ANYONE = Actor("operator", operator=True)
TOPICS = {
    "tea": ["oolong", "green", "black", "white", "herbal", "iced", "jasmine", "mint", "chai"],
    "train": ["night", "express", "local", "delayed", "early", "coastal", "slow", "crowded", "new"],
    "预算会议": ["季度", "年度", "部门", "临时", "项目", "追加", "市场", "研发", "差旅"],
}


def filled(core, library, who, *, copies=3):
    """A library of three topics; returns memory ids by topic."""
    ids = {}
    for topic, words in TOPICS.items():
        for word in words[: copies * 3]:
            said = f"{topic} {word} {topic}" if topic.isascii() else f"{word}{topic}在{topic}"
            decision = core.memories.add(Draft(said), subject=who)
            if decision.memory is not None:
                ids.setdefault(topic, []).append(decision.memory.id)
    return ids


def drawn(core, library, settings=None, **how):
    job = core.projection.wait(core.projection.draw(library.id, settings, **how))
    assert job.state == "done", job.note
    return job


@pytest.fixture
def loose(core, library):
    """The gate's duplicate threshold out of the way: these tests want similar texts."""
    core.libraries.set(library.id, {"duplicate_threshold": 1.0})
    return core.libraries.get(library.id)


@pytest.fixture
def topics(core, loose, who):
    return filled(core, loose, who)


def test_a_drawn_map_has_a_place_for_every_memory_and_says_how_far_to_trust_it(core, loose, topics):
    with pytest.raises(NotFound):
        core.projection.view(loose.id, actor=ANYONE)
    job = drawn(core, loose)
    assert "Drawn with umap in" in job.note
    view = core.projection.view(loose.id, actor=ANYONE)
    assert set(view.ids) == {i for ids in topics.values() for i in ids}
    assert np.isfinite(view.x).all()
    assert np.isfinite(view.y).all()
    assert view.picture.origin == "current"
    assert view.faithfulness.preservation > view.faithfulness.chance
    assert len(view.texts) == len(view.types) == len(view.created) == len(view.ids)
    assert view.stale == view.late == 0


def test_groups_are_named_by_their_words_in_both_languages(core, loose, topics):
    drawn(core, loose)
    view = core.projection.view(loose.id, actor=ANYONE)
    names = " ".join(c.name for c in view.clusters)
    for word in ("tea", "train", "预算会议"):
        assert word in names
    assert sum(c.size for c in view.clusters) == int((view.cluster >= 0).sum())


def test_the_same_library_is_drawn_the_same_way_twice(core, loose, topics):
    drawn(core, loose)
    one = core.projection.view(loose.id, actor=ANYONE)
    drawn(core, loose)
    two = core.projection.view(loose.id, actor=ANYONE)
    assert two.picture.id != one.picture.id
    assert one.ids == two.ids
    assert np.array_equal(one.x, two.x)
    assert np.array_equal(one.y, two.y)
    # The second replaced the first: same vectors, same settings.
    assert [p.id for p in core.projection.pictures(loose.id)] == [two.picture.id]


def test_pictures_of_other_settings_are_kept_to_compare_and_the_oldest_go(core, loose, topics):
    for seed in range(8):
        drawn(core, loose, MapSettings(seed=seed))
    kept = core.projection.pictures(loose.id)
    assert [p.settings["seed"] for p in kept] == [7, 6, 5, 4, 3, 2]


def test_what_an_actor_may_not_see_is_not_drawn_counted_named_or_paired(core, loose, who, topics):
    for word in TOPICS["tea"]:
        core.memories.add(
            Draft(f"salary {word} secretword", visibility=Visibility.OWNER_ONLY,
                  scope=Scope.PROJECT),
            subject=who,
        )  # fmt: skip
    for word in TOPICS["train"]:
        core.memories.add(Draft(f"railway {word} train", scope=Scope.PROJECT), subject=who)
    drawn(core, loose)
    core.people.introduce("u2")
    core.people.join("p1", "u2", Role.VIEWER, actor=Actor("u1"))
    other = core.people.actor("u2")
    view = core.projection.view(loose.id, actor=other)
    mine = core.projection.view(loose.id, actor=Actor("u1"))
    visible = set(core.memories.ids(Filter(library_id=loose.id), actor=other))
    assert len(visible) == 9
    assert set(view.ids) == visible
    assert len(mine.ids) > len(view.ids)
    assert not any("salary" in t for t in view.texts)
    assert not any("secretword" in c.name or "salary" in c.name for c in view.clusters)
    for a, b, _ in core.projection.pairs(view.picture.id, actor=other):
        assert {a, b} <= visible
    for memory_id in view.ids:
        assert set(core.projection.nearest(view.picture.id, memory_id, actor=other)) <= visible
    hidden = next(i for i in mine.ids if i not in visible)
    assert core.projection.nearest(view.picture.id, hidden, actor=other) == []
    assert view.stale == 0
    # The sentence of the fit counts vectors; only who sees all of them may read it.
    assert str(len(mine.ids)) not in view.explanation
    stranger = core.projection.view(loose.id, actor=Actor("nobody"))
    assert stranger.ids == []
    assert stranger.clusters == ()
    assert core.projection.locate(
        loose.id, "salary", actor=Actor("nobody"), picture_id=view.picture.id
    ) is None  # fmt: skip


def test_a_query_lands_by_visible_memories_only(core, loose, who, topics):
    drawn(core, loose)
    view = core.projection.view(loose.id, actor=ANYONE)
    landing = core.projection.locate(
        loose.id, "oolong tea", actor=ANYONE, picture_id=view.picture.id
    )
    assert landing.nearest[0][0] in topics["tea"]
    assert landing.nearest[0][1] == max(s for _, s in landing.nearest)
    tea = np.array([view.ids.index(i) for i in topics["tea"]])
    train = np.array([view.ids.index(i) for i in topics["train"]])

    def apart(members):
        return np.hypot(view.x[members] - landing.x, view.y[members] - landing.y).mean()

    assert apart(tea) < apart(train)
    assert core.projection.locate(loose.id, "  ", actor=ANYONE, picture_id=view.picture.id) is None


def test_a_new_memory_is_placed_among_its_own_and_nothing_else_moves(core, loose, who, topics):
    drawn(core, loose)
    before = core.projection.view(loose.id, actor=ANYONE)
    new = core.memories.add(Draft("tea rooibos tea"), subject=who).memory.id
    assert core.projection.view(loose.id, actor=ANYONE).stale == 1
    assert core.projection.catch_up(before.picture.id, loose.id) == 1
    after = core.projection.view(loose.id, actor=ANYONE)
    assert (after.stale, after.late) == (0, 1)
    kept = [after.ids.index(i) for i in before.ids]
    assert np.array_equal(after.x[kept], before.x)
    assert np.array_equal(after.y[kept], before.y)
    at = after.ids.index(new)
    assert after.placed[at]
    tea = [after.ids.index(i) for i in topics["tea"]]
    far = [after.ids.index(i) for i in topics["train"] + topics["预算会议"]]
    here = np.hypot(after.x - after.x[at], after.y - after.y[at])
    assert np.median(here[tea]) < np.median(here[far])
    assert core.projection.nearest(after.picture.id, new, actor=ANYONE)[0] in topics["tea"]
    assert core.projection.catch_up(before.picture.id, loose.id) == 0


def test_an_edited_memory_moves_and_its_old_pairs_go(core, loose, who, topics):
    drawn(core, loose)
    picture = core.projection.view(loose.id, actor=ANYONE).picture
    moved = topics["tea"][0]
    core.memories.edit(moved, actor=Actor("u1"), content="train night train station")
    assert core.projection.view(loose.id, actor=ANYONE).stale == 1
    core.projection.catch_up(picture.id, loose.id)
    after = core.projection.view(loose.id, actor=ANYONE)
    assert after.stale == 0
    at = after.ids.index(moved)
    here = np.hypot(after.x - after.x[at], after.y - after.y[at])
    train = [after.ids.index(i) for i in topics["train"]]
    tea = [after.ids.index(i) for i in topics["tea"][1:]]
    assert np.median(here[train]) < np.median(here[tea])
    assert not any(moved in pair[:2] for pair in core.projection.pairs(picture.id, actor=ANYONE))


def test_a_status_change_colours_a_point_anew_without_redrawing(core, loose, topics):
    drawn(core, loose)
    picture = core.projection.view(loose.id, actor=ANYONE).picture
    core.memories.change_status(topics["tea"][0], Status.ARCHIVED, actor=Actor("u1"))
    after = core.projection.view(loose.id, actor=ANYONE)
    assert after.picture.id == picture.id
    assert after.stale == 0
    assert after.statuses[after.ids.index(topics["tea"][0])] is Status.ARCHIVED


def test_a_deleted_memory_leaves_the_map_and_its_database(core, loose, topics):
    drawn(core, loose)
    gone = topics["tea"][0]
    core.memories.delete(gone, actor=Actor("u1"))
    view = core.projection.view(loose.id, actor=ANYONE)
    assert gone not in view.ids
    with core.runtime.engine.connect() as connection:
        for table, column in (
            ("projection_points", "memory_id"), ("projection_pairs", "first_id"),
            ("projection_pairs", "second_id"),
        ):  # fmt: skip
            rows = (
                select(func.count())
                .select_from(sql_table(table))
                .where(cast(literal_column(column), Text) == gone)
            )
            assert connection.scalar(rows) == 0


def test_missing_and_useless_vectors_are_listed_and_left_out(core, loose, topics):
    lost, flat = topics["tea"][:2]
    with core.runtime.engine.begin() as connection:
        connection.execute(text("DELETE FROM embeddings WHERE memory_id = :id"), {"id": lost})
        connection.execute(
            text("UPDATE embeddings SET embedding = array_fill(0, ARRAY[64])::vector "
                 "WHERE memory_id = :id"), {"id": flat},
        )  # fmt: skip
    drawn(core, loose)
    view = core.projection.view(loose.id, actor=ANYONE)
    reasons = {row.id: row.reason for row in view.left_out}
    assert "no vector yet" in reasons[lost]
    assert "no length" in reasons[flat]
    assert not {lost, flat} & set(view.ids)
    # Once it has a vector, it is placed.
    with core.runtime.engine.begin() as connection:
        connection.execute(
            text("INSERT INTO embeddings (collection_id, memory_id, content_hash, embedding) "
                 "SELECT collection_id, :lost, '', embedding FROM embeddings "
                 "WHERE memory_id = :like"), {"lost": lost, "like": topics["tea"][2]},
        )  # fmt: skip
    core.projection.catch_up(view.picture.id, loose.id)
    assert lost in core.projection.view(loose.id, actor=ANYONE).ids


def test_identical_vectors_share_a_spot_and_are_counted_as_seen(core, loose, who, topics):
    twins = topics["tea"][:3]
    with core.runtime.engine.begin() as connection:
        connection.execute(
            text("UPDATE embeddings e SET embedding = o.embedding FROM embeddings o "
                 "WHERE o.memory_id = :one AND e.memory_id = ANY(:all)"),
            {"one": twins[0], "all": twins},
        )  # fmt: skip
    drawn(core, loose)
    view = core.projection.view(loose.id, actor=ANYONE)
    at = [view.ids.index(i) for i in twins]
    assert view.copies[at].tolist() == [3, 3, 3]
    assert len({(view.x[i], view.y[i]) for i in at}) == 1
    paired = core.projection.pairs(view.picture.id, actor=ANYONE)
    assert sum(s > 0.9999 and {a, b} <= set(twins) for a, b, s in paired) == 2


def test_a_library_of_few_memories_is_drawn_honestly(core, library, who):
    drawn(core, library)
    assert core.projection.view(library.id, actor=ANYONE).ids == []
    core.memories.add(Draft("Prefers oolong tea"), subject=who)
    core.memories.add(Draft("Travels by night train"), subject=who)
    drawn(core, library)
    view = core.projection.view(library.id, actor=ANYONE)
    assert view.picture.method == "line"
    assert len(view.ids) == 2
    assert view.clusters == ()
    assert view.faithfulness is None


def test_another_embedder_is_tried_without_touching_the_library(core, loose, topics):
    drawn(core, loose)
    drawn(core, loose, embedder="hash:32")
    assert core.libraries.get(loose.id) == loose
    ours, trial = core.projection.pictures(loose.id)
    assert (ours.origin, ours.embedder) == ("current", "hash:64")
    assert (trial.origin, trial.embedder) == ("trial", "hash:32")
    left = core.projection.view(loose.id, actor=ANYONE)
    assert left.picture.id == ours.id
    right = core.projection.view(loose.id, actor=ANYONE, picture_id=trial.id)
    compared = core.projection.compare(left, right, actor=ANYONE)
    assert compared.ids == left.ids
    assert compared.right.shape == (len(left.ids), 2)
    assert 0.3 < compared.mean < 1
    same = core.projection.compare(left, left, actor=ANYONE)
    assert same.mean == 1
    assert np.allclose(same.right, np.column_stack([left.x, left.y]), atol=1e-2)
    assert core.projection.catch_up(trial.id, loose.id) == 0
    assert core.projection.locate(loose.id, "tea", actor=ANYONE, picture_id=trial.id) is None


def test_a_picture_from_before_a_re_embedding_stays_and_is_named_so(core, loose, topics):
    drawn(core, loose)
    with core.runtime.engine.begin() as connection:
        from memcore.database import queries

        new = queries.create_collection(connection, loose.id, "hash:16", 16)
        connection.execute(
            text("UPDATE libraries SET collection_id = :c, embedder = 'hash:16', dimensions = 16 "
                 "WHERE id = :id"), {"c": new, "id": loose.id},
        )  # fmt: skip
    core.libraries.forget()
    (before,) = core.projection.pictures(loose.id)
    assert before.origin == "earlier"
    assert core.projection.catch_up(before.id, loose.id) == 0


def test_a_failed_drawing_leaves_the_last_picture_and_says_why(core, loose, topics, monkeypatch):
    drawn(core, loose)
    kept = core.projection.view(loose.id, actor=ANYONE).picture.id
    job = core.projection.wait(core.projection.draw(loose.id, embedder="nonsense"))
    assert job.state == "failed"
    assert "no embedder called 'nonsense'" in job.note
    assert core.projection.view(loose.id, actor=ANYONE).picture.id == kept
    assert len(core.projection.pictures(loose.id)) == 1


def test_the_first_picture_can_be_read_while_umap_still_works(core, loose, topics):
    seen = []
    from memcore.services.projection import drawing

    def watching(*args, **kw):
        early = kw["early"]

        def noted(ids, coordinates):
            early(ids, coordinates)
            seen.append(core.projection.view(loose.id, actor=ANYONE))

        return original(*args, **{**kw, "early": noted})

    original, drawing.draw = drawing.draw, watching
    try:
        drawn(core, loose)
    finally:
        drawing.draw = original
    first = next(v for v in seen if len(v.ids))
    assert first.picture.state == "drawing"
    assert "PCA" in first.explanation
    assert len(first.ids) == sum(map(len, topics.values()))
    assert core.projection.view(loose.id, actor=ANYONE).picture.state == "done"


def test_memories_deleted_while_the_map_is_drawn_do_not_break_it(core, loose, topics):
    from memcore.services.projection import drawing

    original = drawing.draw

    def deleting(*args, **kw):
        picture = original(*args, **{k: v for k, v in kw.items() if k != "early"})
        if len(picture.ids) > 20:
            core.memories.delete(topics["tea"][0], actor=Actor("u1"))
        return picture

    drawing.draw = deleting
    try:
        drawn(core, loose)
    finally:
        drawing.draw = original
    assert topics["tea"][0] not in core.projection.view(loose.id, actor=ANYONE).ids


def test_a_sampled_picture_draws_every_memory(core, loose, who):
    random = np.random.default_rng(1)
    with core.runtime.engine.begin() as connection:
        core.memories.add(Draft("tea oolong tea"), subject=who)
        connection.execute(
            text("INSERT INTO memories (library_id, user_id, scope, scope_id, memory_type, "
                 "content, created_by, content_hash) SELECT :lib, 'u1', 'user', 'u1', 'fact', "
                 "'text ' || i, 'u1', 'h' || i FROM generate_series(1, 400) i"),
            {"lib": loose.id},
        )  # fmt: skip
        ids = list(connection.scalars(text("SELECT id::text FROM memories ORDER BY 1")))
    from memcore.vectors import Record

    core.runtime.store_for(loose).upsert(
        [Record(i, random.standard_normal(64).astype(np.float32), Scope.USER, "u1") for i in ids]
    )
    drawn(core, loose, MapSettings(sample_above=200))
    view = core.projection.view(loose.id, actor=ANYONE)
    assert len(view.ids) == 401
    assert int(view.placed.sum()) == 201
    assert view.late == 0
    # Placing a newcomer asks only fitted points, here half of all.
    core.memories.add(Draft("train night train"), subject=who)
    assert core.projection.catch_up(view.picture.id, loose.id) == 1


def test_types_and_times_come_with_the_points(core, loose, who):
    kept = core.memories.add(
        Draft("Never ship on Fridays", memory_type=MemoryType.CONSTRAINT, confidence=0.9,
              title="Release"),
        subject=Subject(loose.id, user_id="u9"),
    ).memory  # fmt: skip
    drawn(core, loose)
    view = core.projection.view(loose.id, actor=ANYONE)
    assert view.types == [MemoryType.CONSTRAINT]
    assert view.users == ["u9"]
    assert view.titles == ["Release"]
    assert view.created == [kept.created_at]
    assert view.confidence[0] == pytest.approx(0.9)


def test_opening_a_core_loads_neither_umap_nor_numba():
    code = (
        "import sys, memcore.services.projection\n"
        "loaded = {'umap', 'numba', 'sklearn', 'scipy'} & set(sys.modules)\n"
        "assert not loaded, loaded"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
