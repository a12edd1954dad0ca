from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as budget
from hypothesis import strategies as st

from memcore.models import Candidate, Scope
from memcore.rules.ranking import rank
from memcore.rules.remedies import remedies
from memcore.settings import SPECS, RankingSettings
from tests.pure.test_ranking import NOON, candidate


def pool(*similarities: float, **given: Any) -> list[Candidate]:
    return [candidate(f"m{i}", s, **given) for i, s in enumerate(similarities)]


def test_one_more_hit_is_the_least_when_it_is_next_in_line() -> None:
    changes = remedies(pool(0.9, 0.8, 0.7), "m2", RankingSettings(max_recall=2), now=NOON)
    assert (changes[0].setting, changes[0].before, changes[0].after) == ("max_recall", 2, 3)


def test_a_threshold_is_lowered_no_further_than_needed() -> None:
    settings = RankingSettings(similarity_threshold=0.75)
    changes = remedies(pool(0.9, 0.7), "m1", settings, now=NOON)
    assert changes[0].setting == "similarity_threshold"
    assert changes[0].after == pytest.approx(0.7, abs=0.011)


def test_a_confident_memory_is_helped_by_confidence() -> None:
    near = [candidate(f"n{i}", 0.9, confidence=0.5) for i in range(30)]
    sure = candidate("sure", 0.2, confidence=1.0)
    settings = RankingSettings(max_recall=8)
    changes = remedies([*near, sure], "sure", settings, now=NOON)
    found = {c.setting: c.after for c in changes}
    assert found["confidence_weight"] == pytest.approx(0.7, abs=0.011)
    assert found["similarity_weight"] == pytest.approx(0.21, abs=0.011)
    assert changes[0].steps == min(c.steps for c in changes)


values = st.floats(0, 1)


@budget(deadline=None, max_examples=40)
@given(
    st.lists(
        st.tuples(values, values, values, st.sampled_from(list(Scope))), min_size=3, max_size=9
    ),
    st.integers(1, 2),
    st.none() | values,
    st.sampled_from(["near_duplicate", "one_per_type", "off"]),
)
def test_every_change_that_is_offered_brings_the_memory_in_and_stays_in_its_range(
    rows: list[tuple[float, float, float, Scope]], most: int, floor: float | None, dedupe: Any
) -> None:
    candidates = [
        candidate(f"m{i}", s, k, confidence=c, scope=scope)
        for i, (s, k, c, scope) in enumerate(rows)
    ]
    settings = RankingSettings(max_recall=most, similarity_threshold=floor, dedupe=dedupe)
    lost = rank(candidates, settings, now=NOON).dropped
    for memory_id in {d.memory.id for d in lost[:2]}:
        for change in remedies(candidates, memory_id, settings, now=NOON):
            changed = replace(settings, **{change.setting: change.after})
            assert memory_id in [h.memory.id for h in rank(candidates, changed, now=NOON).hits]
            spec = SPECS[change.setting]
            if change.after is not None and spec.low is not None and spec.high is not None:
                assert spec.low <= change.after <= spec.high
