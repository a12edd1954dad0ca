"""What a picture promises, on arrays alone: no database, no page."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from memcore.errors import InvalidInput
from memcore.projection import MapSettings, Picture
from memcore.projection.arrangement import aligned, fuzzy_graph, pca, place
from memcore.projection.clusters import by_size, clustered, isolation
from memcore.projection.fitting import draw
from memcore.projection.islands import gathered
from memcore.projection.neighbours import nearest, nearest_among
from memcore.projection.rows import distinct, prepare


def ids_of(n: int) -> list[str]:
    return [f"m{i:05d}" for i in range(n)]


def groups(per: int, count: int, d: int = 24, *, spread: float = 0.25, seed: int = 3) -> np.ndarray:
    """`count` groups of `per` vectors each, one after the other."""
    random = np.random.default_rng(seed)
    centres = random.standard_normal((count, d))
    rows = np.repeat(centres, per, axis=0) + spread * random.standard_normal((per * count, d))
    return rows.astype(np.float32)


@pytest.fixture(scope="module")
def three_groups() -> Picture:
    return draw(ids_of(150), groups(50, 3))


@pytest.mark.parametrize("n", range(20))
@pytest.mark.parametrize("d", [1, 2, 1536])
def test_few_memories_are_drawn_whatever_the_width(n: int, d: int) -> None:
    vectors = np.random.default_rng(n).standard_normal((n, d)).astype(np.float32)
    picture = draw(ids_of(n), vectors)
    assert picture.coordinates.shape == (n, 2)
    assert np.isfinite(picture.coordinates).all()
    assert picture.method in ("nothing", "one_spot", "line", "pca", "umap")
    assert picture.explanation
    if picture.spots < 16:
        assert picture.method != "umap"


def test_a_small_picture_says_why_it_is_not_umap() -> None:
    picture = draw(ids_of(9), groups(3, 3))
    assert picture.method == "pca"
    assert "9 distinct vectors are too few for UMAP" in picture.explanation
    assert picture.faithfulness is not None


def test_no_memories_draw_an_empty_picture() -> None:
    picture = draw([], [])
    assert picture.ids == ()
    assert picture.method == "nothing"
    assert picture.faithfulness is None
    assert "nothing to draw" in picture.explanation


def test_two_memories_lie_apart_on_one_line() -> None:
    picture = draw(["a", "b"], [[1, 0, 0], [0, 1, 0]])
    assert picture.method == "line"
    assert np.linalg.norm(picture.coordinates[0] - picture.coordinates[1]) > 0.5


def test_identical_vectors_share_one_spot_and_say_how_many() -> None:
    picture = draw(ids_of(12), np.tile(np.arange(1, 9, dtype=np.float32), (12, 1)))
    assert picture.spots == 1
    assert picture.method == "one_spot"
    assert "All 12 memories have the same vector" in picture.explanation
    assert len(np.unique(picture.coordinates, axis=0)) == 1


def test_copies_are_fitted_once_and_lie_on_their_original() -> None:
    vectors = np.vstack([np.tile(groups(1, 1), (25, 1)), groups(8, 5, seed=9)])
    one, two = draw(ids_of(65), vectors), draw(ids_of(65), vectors)
    assert one.method == "umap"
    assert one.spots == 41
    assert len({tuple(xy) for xy in one.coordinates[:25].tolist()}) == 1
    assert np.array_equal(one.coordinates, two.coordinates)
    assert np.isfinite(one.coordinates).all()


def test_a_vector_and_its_multiple_point_the_same_way_and_share_a_spot() -> None:
    assert draw(["a", "b", "c"], [[1, 2], [3, 6], [2, -1]]).spots == 2


def test_copies_are_near_duplicates_of_their_original() -> None:
    pairs = draw(["a", "b", "c", "d"], [[1, 0], [0, 1], [1, 0], [1, 0]]).pairs
    assert [(int(a), int(b)) for a, b in zip(pairs.first, pairs.second, strict=True)] == [
        (0, 2),
        (0, 3),
    ]
    assert pairs.similarity.tolist() == [1, 1]


def test_what_cannot_be_drawn_is_listed_with_its_reason_and_the_rest_is_drawn() -> None:
    picture = draw(
        ["nan", "zero", "fine", "infinite", "missing", "tiny", "empty"],
        [["nan", 1], [0, 0], [1, 0], [float("inf"), 1], None, [1e-9, 0], []],
    )
    assert picture.ids == ("fine",)
    assert {row.id: row.reason for row in picture.left_out} == {
        "nan": "not_finite", "infinite": "not_finite", "zero": "zero", "tiny": "zero",
        "missing": "missing", "empty": "missing",
    }  # fmt: skip
    assert all(row.detail for row in picture.left_out)


def test_vectors_of_another_length_are_left_out_and_can_be_chosen_instead() -> None:
    vectors = [[1.0] * 5] * 2 + [[1.0, 2.0, 3.0], [3.0, 2.0, 1.0], [0.0, 1.0, 0.0]]
    commonest = draw(ids_of(5), vectors)
    assert commonest.dimensions == 3
    assert commonest.groups == ((3, 3), (5, 2))
    assert {row.reason for row in commonest.left_out} == {"other_dimensions"}
    assert draw(ids_of(5), vectors, dimensions=5).ids == ("m00000", "m00001")
    with pytest.raises(InvalidInput, match="No vector has 7 dimensions"):
        draw(ids_of(5), vectors, dimensions=7)


def test_ids_must_be_unique_and_one_per_vector() -> None:
    with pytest.raises(InvalidInput, match="'a' comes twice"):
        draw(["a", "a"], [[1, 0], [0, 1]])
    with pytest.raises(InvalidInput, match="2 ids but 1 vectors"):
        draw(["a", "b"], [[1, 0]])


def test_row_order_does_not_turn_the_picture(three_groups: Picture) -> None:
    vectors, ids = groups(50, 3), ids_of(150)
    order = np.random.default_rng(1).permutation(150)
    shuffled = draw([ids[i] for i in order], vectors[order])
    assert shuffled.ids == three_groups.ids
    assert np.array_equal(shuffled.coordinates, three_groups.coordinates)


@pytest.mark.slow
def test_another_process_draws_the_same_picture(three_groups: Picture) -> None:
    script = (
        "import sys, json, numpy as np; sys.path.insert(0, 'tests/projection')\n"
        "from test_drawing import *\n"
        "print(json.dumps(draw(ids_of(150), groups(50, 3)).coordinates.tolist()))"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, check=True
    )
    assert np.array_equal(
        np.array(json.loads(done.stdout), dtype=np.float32), three_groups.coordinates
    )


@pytest.mark.parametrize("seed", [0, 8, 42, 2**31 - 1])
@pytest.mark.parametrize(("neighbours", "min_dist"), [(2, 0.0), (200, 0.99)])
def test_every_offered_setting_gives_finite_coordinates(
    seed: int, neighbours: int, min_dist: float
) -> None:
    one_wide = np.random.default_rng(seed).standard_normal((40, 1)).astype(np.float32)
    flat = np.outer(np.linspace(0.1, 1, 30), [1.0, 0.0]) + [0.0, 1.0]
    chosen = MapSettings(neighbours=neighbours, min_dist=min_dist, seed=seed)
    for vectors in (one_wide, flat, groups(7, 4)):
        assert np.isfinite(draw(ids_of(len(vectors)), vectors, chosen).coordinates).all()


def test_a_setting_outside_its_range_is_refused_with_the_range() -> None:
    with pytest.raises(InvalidInput, match="neighbours is 1, outside its range from 2 to 200"):
        MapSettings(neighbours=1)
    with pytest.raises(InvalidInput, match="min_dist is 1"):
        MapSettings(min_dist=1.0)
    with pytest.raises(InvalidInput, match="seed is nan"):
        MapSettings(seed=float("nan"))  # type: ignore[arg-type]


def test_groups_are_found_and_neighbourhoods_kept(three_groups: Picture) -> None:
    truth = np.repeat([0, 1, 2], 50)
    for number in range(3):
        assert len(set(truth[three_groups.cluster == number])) == 1
    assert three_groups.cluster.max() == 2
    figures = three_groups.faithfulness
    assert figures is not None
    assert figures.preservation > 3 * figures.chance
    assert figures.trustworthiness is not None
    assert figures.trustworthiness > 0.9


def test_a_random_picture_is_graded_weak_and_a_true_one_good() -> None:
    from memcore.projection.faithfulness import measured

    random = np.random.default_rng(5)
    flat = random.standard_normal((400, 2)).astype(np.float32)
    # On an arc of the sphere two coordinates lose nothing.
    unit = np.column_stack([flat * 0.05, np.ones(400)])
    unit = (unit / np.linalg.norm(unit, axis=1, keepdims=True)).astype(np.float32)
    near = nearest(unit, 15, pair_floor=2, pair_limit=0).index
    true, _ = measured(unit, flat, near)
    lost, _ = measured(unit, random.standard_normal((400, 2)).astype(np.float32), near)
    assert true is not None
    assert lost is not None
    assert true.grade == "good"
    assert lost.grade == "weak"
    assert abs(lost.preservation - lost.chance) < 0.03


def test_trustworthiness_agrees_with_scikit_learn(three_groups: Picture) -> None:
    from sklearn.manifold import trustworthiness

    vectors = groups(50, 3)
    expected = trustworthiness(vectors, three_groups.coordinates, n_neighbors=15, metric="cosine")
    assert three_groups.faithfulness is not None
    assert three_groups.faithfulness.trustworthiness == pytest.approx(expected, abs=2e-3)


def test_the_fuzzy_graph_is_umap_learns() -> None:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from umap.umap_ import fuzzy_simplicial_set

    unit = prepare(ids_of(200), groups(50, 4)).unit
    found = nearest(unit, 10, pair_floor=2, pair_limit=0)
    index = np.hstack([np.arange(200, dtype=np.int32)[:, None], found.index])
    distance = np.hstack([np.zeros((200, 1), np.float32), 1 - found.similarity])
    theirs, _, _ = fuzzy_simplicial_set(
        unit, 11, np.random.RandomState(0), "cosine", knn_indices=index, knn_dists=distance
    )
    ours = fuzzy_graph(found.index, found.similarity)
    assert abs(ours - theirs).max() < 1e-3


def test_pca_agrees_with_scikit_learn_and_never_mirrors() -> None:
    from sklearn.decomposition import PCA

    vectors = prepare(ids_of(300), groups(100, 3)).unit
    ours, theirs = pca(vectors), PCA(2, svd_solver="full").fit_transform(vectors)
    for axis in (0, 1):
        assert abs(np.corrcoef(ours[:, axis], theirs[:, axis])[0, 1]) > 0.999
    assert np.allclose(pca(vectors, seed=1), ours, atol=1e-3)


def test_a_large_library_is_fitted_on_a_sample_and_the_rest_is_placed_among_it() -> None:
    vectors = groups(100, 6)
    picture = draw(ids_of(600), vectors, MapSettings(sample_above=200))
    assert int((~picture.placed).sum()) == 200
    assert "The other 400 are placed among them" in picture.explanation
    truth = np.repeat(np.arange(6), 100)
    for number in range(int(picture.cluster.max()) + 1):
        members = truth[picture.cluster == number]
        assert (members == np.bincount(members).argmax()).mean() > 0.95


def test_a_growing_library_keeps_most_of_its_sample() -> None:
    vectors = groups(100, 6)
    before = draw(ids_of(500), vectors[:500], MapSettings(sample_above=200))
    after = draw(ids_of(600), vectors, MapSettings(sample_above=200))
    then = {i for i, placed in zip(before.ids, before.placed, strict=True) if not placed}
    now = {i for i, placed in zip(after.ids, after.placed, strict=True) if not placed}
    assert len(then & now) > 150


def test_a_new_row_lands_in_the_densest_part_of_its_neighbours_not_between_groups() -> None:
    left, right = [0.0, 0.0], [10.0, 0.0]
    places = np.array([[left, [0.05, 0], [0, 0.05], right, right]], dtype=np.float32)
    similarity = np.array([[0.9, 0.89, 0.88, 0.87, 0.86]], dtype=np.float32)
    assert place(similarity, places, 10.0)[0, 0] < 0.1


def test_a_copy_of_a_fitted_row_lands_on_it() -> None:
    places = np.array([[[1.0, 2.0], [9.0, 9.0]]], dtype=np.float32)
    assert place(np.array([[1.0, 0.99]]), places, 8.0)[0].tolist() == [1.0, 2.0]


def test_the_first_picture_comes_before_the_slow_one_and_progress_is_told() -> None:
    seen: list[tuple[str, int, int]] = []
    early: list[tuple[tuple[str, ...], np.ndarray]] = []

    def note(stage: str, done: int, total: int) -> None:
        seen.append((stage, done, total))

    def first(ids: tuple[str, ...], coordinates: np.ndarray) -> None:
        assert not any(stage == "Arranging with UMAP" for stage, _, _ in seen)
        early.append((ids, coordinates))

    picture = draw(ids_of(60), groups(20, 3), early=first, progress=note)
    assert early[0][0] == picture.ids
    assert early[0][1].shape == (60, 2)
    stages = list(dict.fromkeys(stage for stage, _, _ in seen))
    assert stages == [
        "Reading vectors", "Drawing with PCA", "Comparing memories", "Arranging with UMAP",
        "Finding groups", "Measuring the picture",
    ]  # fmt: skip
    assert dict(picture.seconds).keys() == set(stages)


def test_progress_may_stop_the_work() -> None:
    class Enough(Exception):
        pass

    def stop(stage: str, done: int, total: int) -> None:
        if stage == "Comparing memories":
            raise Enough

    with pytest.raises(Enough):
        draw(ids_of(60), groups(20, 3), progress=stop)


def test_neighbours_and_pairs_are_those_of_the_full_product() -> None:
    unit = prepare(ids_of(1500), groups(30, 50)).unit
    found = nearest(unit, 7, pair_floor=0.9, pair_limit=10**6)
    cosine = unit @ unit.T
    np.fill_diagonal(cosine, -2)
    expected = np.sort(cosine, axis=1)[:, ::-1][:, :7]
    assert np.allclose(found.similarity, expected, atol=1e-5)
    first, second = np.nonzero(np.triu(cosine, 1) >= 0.9)
    assert found.total == len(first)
    assert set(zip(found.first.tolist(), found.second.tolist(), strict=True)) == set(
        zip(first.tolist(), second.tolist(), strict=True)
    )
    assert (np.diff(found.pair_similarity) <= 0).all()


def test_a_cut_list_of_pairs_keeps_the_most_similar_and_says_from_where() -> None:
    unit = prepare(ids_of(600), groups(30, 20)).unit
    whole = nearest(unit, 5, pair_floor=0.5, pair_limit=10**6)
    cut = nearest(unit, 5, pair_floor=0.5, pair_limit=100)
    assert cut.total == whole.total > 100
    assert len(cut.first) == 100
    assert np.allclose(cut.pair_similarity, whole.pair_similarity[:100])
    assert cut.floor == pytest.approx(float(whole.pair_similarity[99]))


def test_searching_in_cells_finds_nearly_all_and_reports_how_many() -> None:
    unit = prepare(ids_of(4000), groups(40, 100)).unit
    exact = nearest(unit, 10, pair_floor=0.85, pair_limit=10**6)
    cells = nearest(unit, 10, pair_floor=0.85, pair_limit=10**6, exact_up_to=100)
    assert exact.recall == 1
    truly = np.mean([
        len(np.intersect1d(a, b)) / 10 for a, b in zip(exact.index, cells.index, strict=True)
    ])  # fmt: skip
    assert cells.recall == pytest.approx(truly, abs=0.03)
    assert cells.recall > 0.9
    assert len(cells.first) == cells.total > 0.97 * exact.total


def test_many_equal_similarities_are_still_ranked() -> None:
    # A bag-of-words embedder gives mostly cosine 0.
    unit = np.eye(64, dtype=np.float32)[np.arange(3000) % 64]
    unit[:, 0] += np.linspace(0.01, 0.02, 3000, dtype=np.float32)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    found = nearest(unit, 5, pair_floor=0.9999, pair_limit=50)
    assert (found.index >= 0).all()
    assert (np.diff(found.similarity, axis=1) <= 1e-6).all()
    assert (np.arange(3000)[1:, None] % 64 == found.index[1:] % 64).mean() > 0.95


def test_the_nearest_fitted_rows_come_nearest_first() -> None:
    unit = prepare(ids_of(40), groups(10, 4)).unit
    index, similarity = nearest_among(unit[:3], unit, 4)
    assert index[:, 0].tolist() == [0, 1, 2]
    assert (np.diff(similarity, axis=1) <= 0).all()
    assert nearest_among(unit[:1], unit[:2], 15)[0].shape == (1, 2)


def test_an_outlier_is_far_from_its_nearest_and_the_limit_is_told() -> None:
    vectors = np.vstack([groups(20, 3), -groups(1, 1, seed=77)])
    picture = draw(ids_of(61), vectors)
    outliers = np.flatnonzero(picture.isolation > picture.isolation_limit)
    assert 60 in outliers
    assert picture.isolation.argmax() == 60
    assert len(outliers) < 4
    few = isolation(np.full((4, 3), 0.5, dtype=np.float32))
    assert few[1] == float("inf")


def test_far_islands_come_nearer_and_nothing_changes_inside_them() -> None:
    random = np.random.default_rng(2)
    islands = [random.standard_normal((60, 2)) + at for at in ([0, 0], [400, 0], [-30, 90])]
    before = np.vstack(islands).astype(np.float32)
    after = gathered(before)
    assert np.ptp(after, axis=0).max() < 0.1 * np.ptp(before, axis=0).max()
    for number in range(3):
        rows = slice(60 * number, 60 * number + 60)
        inside = before[rows] - before[rows].mean(axis=0)
        assert np.allclose(after[rows] - after[rows].mean(axis=0), inside, atol=1e-3)
    middles = [after[60 * n : 60 * n + 60].mean(axis=0) for n in range(3)]
    assert middles[1][0] > middles[0][0]
    assert middles[2][1] > middles[0][1]
    gaps = [
        np.linalg.norm(after[60 * a : 60 * a + 60, None] - after[None, 60 * b : 60 * b + 60],
                       axis=2).min()
        for a, b in ((0, 1), (0, 2), (1, 2))
    ]  # fmt: skip
    assert min(gaps) > 0.3
    together = random.standard_normal((200, 2)).astype(np.float32)
    assert gathered(together) is together


def test_groups_are_numbered_by_size() -> None:
    label = by_size(np.array([5, 5, -1, 2, 2, 2, 9], dtype=np.int32))
    assert label.tolist() == [1, 1, -1, 0, 0, 0, 2]
    assert set(clustered(np.zeros((4, 2), dtype=np.float32)).tolist()) == {-1}


def test_one_picture_can_be_laid_over_another() -> None:
    fixed = np.random.default_rng(0).standard_normal((30, 2)).astype(np.float32)
    turn = np.array([[0, -1], [-1, 0]], dtype=np.float32)
    moving = fixed @ turn * 7 + np.array([3, 40], dtype=np.float32)
    shared = np.arange(20, dtype=np.int32)
    assert np.allclose(aligned(moving, fixed, (shared, shared)), fixed, atol=1e-3)


@settings(max_examples=60, deadline=None)
@given(
    hnp.arrays(
        np.float32,
        hnp.array_shapes(min_dims=2, max_dims=2, max_side=14),
        elements=st.floats(width=32, allow_nan=True, allow_infinity=True),
    )
)
def test_any_numbers_give_a_picture_that_accounts_for_every_row(vectors: np.ndarray) -> None:
    ids = ids_of(len(vectors))
    picture = draw(ids, vectors)
    assert sorted([*picture.ids, *(row.id for row in picture.left_out)]) == ids
    assert np.isfinite(picture.coordinates).all()
    assert picture.left_out == draw(ids, vectors).left_out


def test_equal_rows_are_found_across_negative_zero() -> None:
    first, spot = distinct(np.array([[0.0, 1.0], [-0.0, 1.0], [1.0, 0.0]], dtype=np.float32))
    assert first.tolist() == [0, 2]
    assert spot.tolist() == [0, 0, 1]


def test_importing_memcore_loads_neither_umap_nor_numba() -> None:
    code = (
        "import sys, memcore, memcore.core, memcore.projection.fitting, memcore.cli\n"
        "loaded = {'umap', 'numba', 'sklearn', 'scipy'} & set(sys.modules)\n"
        "assert not loaded, loaded"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
