from __future__ import annotations

import math
import random
from dataclasses import FrozenInstanceError, fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memcore.models import (
    Candidate,
    Memory,
    MemoryType,
    Ranking,
    Scope,
    Status,
    Visibility,
    maker,
)
from memcore.rules.ranking import rank, same_saying, shown
from memcore.settings import RankingSettings

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
DEFAULT = RankingSettings()


def memory(id: str = "m", content: str | None = None, **given: Any) -> Memory:
    """A memory with everything filled in; content differs by id unless given."""
    fields: dict[str, Any] = {
        "title": "", "tags": (), "memory_type": MemoryType.FACT, "scope": Scope.USER,
        "scope_id": "u", "confidence": 0.8, "relevance": 0.8, "visibility": Visibility.MEMBERS,
        "status": Status.ACTIVE, "library_id": "l", "user_id": "u", "created_by": "u",
        "source": "explicit", "content_hash": id, "created_at": NOON, "updated_at": NOON,
    }  # fmt: skip
    return Memory(id=id, content=content or f"statement {id * 3}", **{**fields, **given})


def candidate(id: str, similarity: float, lexical: float = 0.0, **given: Any) -> Candidate:
    ranks = {k: given.pop(k) for k in ("dense_rank", "lexical_rank") if k in given}
    return Candidate(memory(id, **given), similarity, lexical, **ranks)


def ids(ranking: Ranking) -> list[str]:
    return [hit.memory.id for hit in ranking.hits]


def reasons(ranking: Ranking) -> dict[str, str]:
    return {d.memory.id: d.reason for d in ranking.dropped}


def term(ranking: Ranking, name: str, place: int = 0) -> float:
    return next(t.value for t in ranking.hits[place].terms if t.name == name)


@pytest.mark.parametrize(
    ("similarity", "confidence", "scope", "total"),
    [
        (0.9, 0.9, Scope.SESSION, 0.45 + 0.27 + 0.2),
        (0.64, 0.75, Scope.PROJECT, 0.32 + 0.225 + 0.16),
        (0.5, 1.0, Scope.USER, 0.25 + 0.3 + 0.12),
        (0.0, 0.0, Scope.USER, 0.12),
    ],
)
def test_the_score_is_half_similarity_and_three_tenths_confidence_and_two_tenths_scope(
    similarity: float, confidence: float, scope: Scope, total: float
) -> None:
    hit = rank([candidate("a", similarity, confidence=confidence, scope=scope)], DEFAULT).hits[0]
    assert hit.score == pytest.approx(total, abs=1e-9)


def test_the_best_of_a_bad_pool_keeps_its_low_similarity() -> None:
    ranking = rank(
        [candidate(i, s) for i, s in zip("abc", (0.14, 0.11, 0.07), strict=True)], DEFAULT
    )
    assert [term(ranking, "similarity", i) for i in range(3)] == pytest.approx([0.14, 0.11, 0.07])


def test_a_near_match_beats_a_confident_stranger() -> None:
    ranking = rank(
        [
            candidate("pottery", 0.2, confidence=0.95, scope=Scope.SESSION),
            candidate("swimming", 0.7, confidence=0.75),
        ],
        DEFAULT,
    )
    assert ids(ranking) == ["swimming", "pottery"]


def test_a_confident_memory_is_rescued_from_third_place_by_similarity() -> None:
    pool = [
        candidate("near", 0.8, confidence=0.7),
        candidate("nearer", 0.82, confidence=0.7),
        candidate("sure", 0.77, confidence=1.0, scope=Scope.SESSION),
    ]
    assert ids(rank(pool, DEFAULT, limit=2)) == ["sure", "nearer"]


@pytest.mark.parametrize("value", [math.nan, None, -0.3, 90, math.inf, 1.0000001])
def test_an_unusable_confidence_is_repaired_and_says_so(value: Any) -> None:
    good = candidate("good", 0.9, confidence=0.9)
    ranking = rank([candidate("bad", 0.1, confidence=value), good], DEFAULT)
    assert ids(ranking) == ["good", "bad"]
    assert 0 <= term(ranking, "confidence", 1) <= 1
    assert ranking.hits[1].notes
    assert not ranking.hits[0].notes


@pytest.mark.parametrize(("said", "value", "noted"), [("PROJECT", 0.8, False), ("team", 0.6, True)])
def test_scope_ignores_case_and_an_unknown_one_counts_as_user(
    said: Any, value: float, noted: bool
) -> None:
    ranking = rank([candidate("a", 0.5, scope=said)], DEFAULT)
    assert term(ranking, "scope") == value
    assert bool(ranking.hits[0].notes) is noted


@pytest.mark.parametrize(("raw", "shown"), [(1.0000003, 1.0), (-0.4, 0.0), (math.nan, 0.0)])
def test_similarity_is_clamped_to_zero_and_one(raw: float, shown: float) -> None:
    ranking = rank([candidate("a", raw)], DEFAULT)
    assert term(ranking, "similarity") == shown
    assert math.isfinite(ranking.hits[0].score)


def test_ties_go_to_the_newer_then_to_the_smaller_id_in_any_input_order() -> None:
    pool = [
        candidate("c", 0.5),
        candidate("a", 0.5),
        candidate("b", 0.5, created_at=NOON + timedelta(days=1)),
    ]
    for seed in range(10):
        random.Random(seed).shuffle(pool)
        assert ids(rank(pool, DEFAULT)) == ["b", "a", "c"]


def test_different_preferences_of_one_type_all_stay() -> None:
    texts = ("偏爱靠窗的座位", "偏爱安静的餐厅", "爱喝普洱", "Prefers short meetings")
    pool = [
        candidate(str(i), 0.5, content=t, memory_type=MemoryType.PREFERENCE)
        for i, t in enumerate(texts)
    ]
    assert len(rank(pool, DEFAULT).hits) == 4


def test_of_two_that_say_the_same_the_better_stays_and_is_named() -> None:
    pool = [
        candidate("worse", 0.7, content="Ana prefers aisle seats."),
        candidate("best", 0.8, content="Ana prefers the aisle seat"),
        candidate(
            "other type", 0.6, content="Ana prefers aisle seats", memory_type=MemoryType.HABIT
        ),
    ]
    ranking = rank(pool, DEFAULT)
    assert ids(ranking) == ["best", "other type"]
    assert reasons(ranking) == {"worse": "near_duplicate"}
    assert "best" in ranking.dropped[0].detail
    assert len(rank(pool, replace(DEFAULT, dedupe="off")).hits) == 3


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The rent is 900 euros", "The rent is 950 euros"),
        ("He likes olives", "He does not like olives"),
        ("他喜欢吃香菜", "他不喜欢吃香菜"),
        ("每周三下午开例会，地点在二楼会议室", "每周四下午开例会，地点在二楼会议室"),
        ("The dentist for the whole family and the dog is Dr Kim in Main Street, since May",
         "The dentist for the whole family and the cat is Dr Kim in Main Street, since May"),
    ],
)  # fmt: skip
def test_one_changed_word_makes_two_statements(one: str, other: str) -> None:
    assert same_saying(one, other) == 0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("用户喜欢在早上跑步。", "用户喜欢在早上跑步"),
        ("User likes hiking in the mountains", "The user likes hiking in mountains!"),
    ],
)
def test_punctuation_articles_and_endings_make_no_difference(one: str, other: str) -> None:
    assert same_saying(one, other) >= 0.85


def test_one_per_type_leaves_one_per_type() -> None:
    pool = [candidate(i, 0.5) for i in "abc"] + [candidate("h", 0.4, memory_type=MemoryType.HABIT)]
    ranking = rank(pool, replace(DEFAULT, dedupe="one_per_type"))
    assert ids(ranking) == ["a", "h"]
    assert reasons(ranking) == {"b": "one_per_type", "c": "one_per_type"}


@pytest.mark.parametrize("fusion", ["weighted_sum", "rrf"])
def test_the_threshold_holds_in_every_mode_and_says_by_how_much(fusion: Any) -> None:
    settings = replace(DEFAULT, similarity_threshold=0.8, fusion=fusion)
    dense = candidate("dense", 0.6, dense_rank=1)
    keyword = candidate("keyword", 0.0, 0.5, lexical_rank=1)
    both = candidate("both", 0.7, 0.6, dense_rank=2, lexical_rank=2)
    ranking = rank([dense, keyword, both], settings)
    assert ids(ranking) == ["both"]
    assert reasons(ranking) == {"dense": "below_threshold", "keyword": "below_threshold"}
    assert "0.200 below 0.800" in ranking.dropped[0].detail


def test_extra_terms_change_nothing_until_they_are_weighted() -> None:
    pool = [
        candidate("old", 0.5, created_at=NOON - timedelta(days=30), access_count=10),
        candidate("new", 0.5),
    ]
    plain = rank(pool, DEFAULT)
    assert plain.hits[0].score == plain.hits[1].score
    recent = rank(pool, replace(DEFAULT, recency_weight=0.1), now=NOON)
    assert ids(recent) == ["new", "old"]
    assert recent.hits[0].score - recent.hits[1].score == pytest.approx(0.05)
    used = rank(pool, replace(DEFAULT, usage_weight=0.1))
    assert ids(used) == ["old", "new"]
    assert used.hits[0].score - used.hits[1].score == pytest.approx(0.05)


def test_a_keyword_match_only_ever_raises_similarity() -> None:
    pool = [candidate("with", 0.4, 0.5), candidate("without", 0.4)]
    ranking = rank(pool, DEFAULT)
    assert term(ranking, "similarity", 0) == pytest.approx(0.7)
    assert term(ranking, "similarity", 1) == pytest.approx(0.4)
    assert [t.name for t in ranking.hits[0].terms if t.name in ("keyword", "dense")]
    only_vectors = rank(pool, replace(DEFAULT, lexical=False))
    assert term(only_vectors, "similarity", 0) == term(only_vectors, "similarity", 1) == 0.4


def test_similarity_counts_from_what_unrelated_texts_have() -> None:
    settings = replace(DEFAULT, unrelated_similarity=0.75)
    ranking = rank([candidate("near", 0.9), candidate("far", 0.7)], settings)
    assert term(ranking, "similarity", 0) == pytest.approx(0.6)
    assert term(ranking, "similarity", 1) == 0
    assert [term(ranking, "dense", i) for i in (0, 1)] == [0.9, 0.7]


def test_stages_count_what_is_left() -> None:
    pool = [
        candidate("a", 0.9), candidate("b", 0.8, content="Two cups a day"),
        candidate("c", 0.7, content="two cups a day."), candidate("d", 0.6), candidate("e", 0.1),
    ]  # fmt: skip
    ranking = rank(pool, replace(DEFAULT, similarity_threshold=0.5, max_recall=2))
    assert dict(ranking.stages) == {
        "candidates": 5, "above_threshold": 4, "distinct": 3, "top_k": 2,
    }  # fmt: skip
    assert reasons(ranking) == {
        "c": "near_duplicate", "d": "outranked", "e": "below_threshold",
    }  # fmt: skip


words = st.lists(st.sampled_from("red blue tall ship crane 3 not".split()), min_size=1, max_size=6)


@given(st.lists(words, min_size=2, max_size=12), st.sampled_from([0.0, 0.3, 0.6, 0.85, 1.0]))
def test_near_duplicates_are_what_pair_by_pair_comparison_says(
    texts: list[list[str]], limit: float
) -> None:
    pool = [
        candidate(f"{i:02d}", 1 - i / 100, content=" ".join(words)) for i, words in enumerate(texts)
    ]
    kept: list[Candidate] = []
    for one in pool:
        said = (same_saying(one.memory.content, other.memory.content) for other in kept)
        if not any(same >= limit for same in said):
            kept.append(one)
    ranking = rank(pool, replace(DEFAULT, dedupe_threshold=limit, max_recall=100))
    assert ids(ranking) == [c.memory.id for c in kept]


def test_a_value_made_fast_is_the_same_value() -> None:
    one = memory("a")
    values = [getattr(one, f.name) for f in fields(one)]
    made = maker(Memory)(*values)
    assert made == one
    assert type(made) is Memory
    assert hash(replace(made, attributes=())) == hash(replace(one, attributes=()))
    with pytest.raises(FrozenInstanceError):
        made.content = "other"  # type: ignore[misc]


numbers = st.floats(allow_nan=True, allow_infinity=True)
candidates = st.builds(
    lambda i, s, k, c, t, a: candidate(
        str(i), s, k, confidence=c, memory_type=t, created_at=NOON - timedelta(days=a)
    ),
    st.integers(0, 10**6), numbers, numbers, numbers, st.sampled_from(list(MemoryType)),
    st.integers(0, 1000),
)  # fmt: skip
any_settings = st.builds(
    RankingSettings,
    similarity_weight=st.floats(0, 10), confidence_weight=st.floats(0, 10),
    recency_weight=st.floats(0, 10), usage_weight=st.floats(0, 10),
    keyword_weight=st.floats(0, 10), max_recall=st.integers(1, 100),
    similarity_threshold=st.none() | st.floats(0, 1),
    dedupe=st.sampled_from(["near_duplicate", "one_per_type", "off"]), lexical=st.booleans(),
    fusion=st.sampled_from(["weighted_sum", "rrf"]), unrelated_similarity=st.floats(0, 0.95),
    dense_weight=st.floats(0, 1),
)  # fmt: skip


@given(st.lists(candidates, max_size=30, unique_by=lambda c: c.memory.id), any_settings)
def test_every_candidate_is_a_hit_or_dropped_and_every_score_is_its_terms_sum(
    pool: list[Candidate], settings: RankingSettings
) -> None:
    ranking = rank(pool, settings)
    told = [h.memory.id for h in ranking.hits] + [d.memory.id for d in ranking.dropped]
    assert sorted(told) == sorted(c.memory.id for c in pool)
    assert len(ranking.hits) <= settings.max_recall
    for scored in (*ranking.hits, *ranking.dropped):
        assert scored.score == pytest.approx(sum(t.contribution for t in scored.terms), abs=1e-9)
        assert all(0 <= t.value <= 1 for t in scored.terms)
    scores = [h.score for h in ranking.hits]
    assert scores == sorted(scores, reverse=True)
    assert rank(list(reversed(pool)), settings) == replace(
        ranking, dropped=rank(list(reversed(pool)), settings).dropped
    )


@given(candidates, any_settings, st.integers(2, 4))
def test_what_is_shown_of_a_score_adds_up_at_the_precision_shown(
    one: Candidate, settings: RankingSettings, digits: int
) -> None:
    hit = rank([one], replace(settings, similarity_threshold=None)).hits[0]
    parts, total = shown(hit.terms, digits)
    assert round(sum(part for _, part in parts), digits) == total
    assert total == pytest.approx(hit.score, abs=0.51 / 10**digits)
    for name, part in parts:
        exact = next(t.contribution for t in hit.terms if t.name == name)
        assert part == pytest.approx(exact, abs=1.01 / 10**digits)
