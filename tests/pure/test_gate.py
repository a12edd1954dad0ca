from __future__ import annotations

import math
import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memcore.models import Draft, Facts, Finding, MemoryType, Neighbour
from memcore.rules import gate
from memcore.settings import GateSettings

TEXT = "Keeps bees on the roof"
ORDER = ("confidence", "sensitive", "length", "duplicate", "rate")


def facts(text: str = TEXT, **changes: Any) -> Facts:
    whole = Facts(
        text=text,
        confidence=0.9,
        neighbours=(),
        extractions_in_window=0,
        rate_exempt=False,
        sensitive=(),
    )
    return replace(whole, **changes)


def near(similarity: float, relation: str = "reworded", **changes: Any) -> Neighbour:
    return replace(
        Neighbour("m1", "Has beehives on the roof", similarity, relation=relation, reason="why."),
        **changes,
    )


def judged(given: Facts, **settings: Any) -> Any:
    return gate.judge(Draft(given.text), given, GateSettings(**settings))


def test_all_five_checks_are_evaluated_in_order_even_when_the_first_fails() -> None:
    verdict = judged(
        facts("no", confidence=0.1, sensitive=(Finding("pin", 0, 2, "[PIN ••••••••]"),),
              neighbours=(near(1.0, exact=True),), extractions_in_window=9)
    )  # fmt: skip
    assert tuple(c.name for c in verdict.checks) == ORDER
    assert not any(c.passed for c in verdict.checks)
    assert verdict.blocked_by == "confidence"
    assert all(c.note.endswith(".") for c in verdict.checks)


@pytest.mark.parametrize(
    ("confidence", "passes"),
    [(0.7, True), (0.699999988079071, True), (0.699, False), (0.6999999, False), (math.nan, False)],
)
def test_the_confidence_edge_counts_and_survives_a_float32_column(
    confidence: float, passes: bool
) -> None:
    check = judged(facts(confidence=confidence)).checks[0]
    assert check.passed is passes
    if not passes and not math.isnan(confidence):
        # What is shown never looks as if it met the limit.
        shown, limit = check.note.split()[1], check.note.split()[-1].rstrip(".")
        assert shown != limit


@pytest.mark.parametrize(
    ("length", "passes"), [(4, False), (5, True), (2000, True), (2001, False), (0, False)]
)
def test_length_limits_count_at_both_edges(length: int, passes: bool) -> None:
    assert judged(facts("字" * length)).checks[2].passed is passes


@pytest.mark.parametrize(
    "text",
    [
        "好嘞，多谢啦！",
        "明白明白",
        "ok, thanks a lot :)",
        "keep-alive 2031-04-05T06:07:08Z",
        "👍 收到！",
    ],
)
def test_a_pure_acknowledgement_has_no_length(text: str) -> None:
    verdict = judged(facts(text))
    assert verdict.blocked_by == "length"
    assert verdict.checks[2].observed == 0


@pytest.mark.parametrize(
    "text", ["好的，以后回答用英文", "thanks to Mia the tests are green", "心跳间隔是三十秒"]
)
def test_one_word_of_substance_makes_a_statement(text: str) -> None:
    assert judged(facts(text)).accepted


def test_a_failed_similarity_query_holds_the_draft_and_never_means_no_duplicate() -> None:
    verdict = judged(facts(neighbours=None))
    assert (verdict.accepted, verdict.outcome, verdict.blocked_by) == (
        False,
        "unchecked",
        "duplicate",
    )
    assert verdict.checks[3].observed is None


def test_a_similarity_that_is_no_number_is_unknown_too() -> None:
    assert judged(facts(neighbours=(near(math.nan),))).outcome == "unchecked"
    # What is known for certain still counts.
    both = (near(math.nan), near(0.99, "covered", memory_id="m2"))
    assert judged(facts(neighbours=both)).matched_id == "m2"


@pytest.mark.parametrize(
    ("similarity", "outcome"),
    [
        (0.85, "duplicate"),
        (0.849999964, "duplicate"),
        (0.8499999, "review"),
        (0.8500001, "duplicate"),
    ],
)
def test_the_duplicate_edge_counts_and_float32_does_not_flip_it(
    similarity: float, outcome: str
) -> None:
    verdict = judged(facts(neighbours=(near(similarity, "covered"),)))
    assert verdict.outcome == outcome
    assert verdict.accepted == (outcome == "review")
    if outcome == "review":
        assert "0.8499999" in verdict.checks[3].note


@pytest.mark.parametrize(
    ("relation", "similarity", "outcome", "accepted"),
    [
        ("same", 0.2, "duplicate", False),
        ("covered", 0.86, "duplicate", False),
        ("covered", 0.84, "review", True),
        ("covered", 0.69, "stored", True),
        ("reworded", 0.93, "duplicate", False),
        ("reworded", 0.86, "review", True),
        ("reworded", 0.84, "stored", True),
        ("extended", 0.71, "update", True),
        ("extended", 0.69, "stored", True),
        ("update", 0.71, "update", True),
        ("update", 0.39, "stored", True),
        ("conflict", 0.71, "conflict", True),
        ("conflict", 0.99, "conflict", True),
        ("distinct", 0.99, "stored", True),
    ],
)
def test_the_outcome_follows_from_relation_and_similarity(
    relation: str, similarity: float, outcome: str, accepted: bool
) -> None:
    verdict = judged(facts(neighbours=(near(similarity, relation),)))
    assert (verdict.outcome, verdict.accepted) == (outcome, accepted)
    assert verdict.matched_id == (None if outcome == "stored" else "m1")


def test_a_duplicate_outweighs_a_conflict_and_a_conflict_an_update() -> None:
    several = (
        near(0.99, "update"),
        near(0.98, "conflict", memory_id="m2"),
        near(0.97, "covered", memory_id="m3"),
    )
    assert judged(facts(neighbours=several)).matched_id == "m3"
    assert judged(facts(neighbours=several[:2])).matched_id == "m2"


def test_what_the_writer_may_not_change_is_not_superseded() -> None:
    verdict = judged(facts(neighbours=(near(0.95, "conflict", replaceable=False),)))
    assert (verdict.outcome, verdict.accepted, verdict.matched_id) == ("review", True, "m1")


def test_an_exact_match_says_which_memory_and_under_which_type() -> None:
    match = near(1.0, "same", exact=True, memory_type=MemoryType.HABIT)
    verdict = gate.judge(
        Draft(TEXT, memory_type=MemoryType.DECISION), facts(neighbours=(match,)), GateSettings()
    )
    assert verdict.matched_id == "m1"
    assert "habit" in verdict.checks[3].note
    assert "decision" in verdict.checks[3].note


def test_a_secret_is_named_by_kind_and_mask_and_redacting_lets_it_pass() -> None:
    found = (Finding("password", 3, 22, "[password ••••••••]"),)
    refused = judged(facts(sensitive=found))
    assert refused.blocked_by == "sensitive"
    assert "password" in refused.checks[1].note
    assert judged(facts(sensitive=found), sensitive_action="redact").accepted


def test_text_that_steers_the_agent_waits_for_a_person() -> None:
    order = (Finding("instruction", 0, 5, "override"),)
    verdict = judged(facts(sensitive=order))
    assert (verdict.accepted, verdict.outcome, verdict.blocked_by) == (False, "review", "sensitive")
    assert judged(facts(sensitive=order), sensitive_action="redact").outcome == "review"
    # Nobody is asked about what would be refused anyway.
    assert judged(facts(sensitive=order, confidence=0.1)).outcome == "rejected"


def test_the_rate_says_how_many_are_left_and_when_the_next_slot_opens() -> None:
    slot = datetime(2031, 5, 6, 7, 8, tzinfo=UTC)
    full = judged(facts(extractions_in_window=3, next_slot=slot)).checks[4]
    assert not full.passed
    assert "2031-05-06 07:08 UTC" in full.note
    assert "1 left" in judged(facts(extractions_in_window=2)).checks[4].note
    assert judged(facts(extractions_in_window=3, rate_exempt=True)).accepted
    assert not judged(facts(), max_extractions=0).checks[4].passed


numbers = st.one_of(st.floats(allow_nan=True, allow_infinity=True), st.floats(0, 1))


@given(
    confidence=numbers,
    similarities=st.lists(numbers, max_size=4),
    relation=st.sampled_from(
        ["", "same", "covered", "reworded", "extended", "update", "conflict", "distinct"]
    ),
    minimum=st.floats(0, 1),
    threshold=st.floats(0, 1),
)
def test_no_number_makes_the_gate_raise_and_accepted_means_all_passed(
    confidence: float, similarities: list[float], relation: str, minimum: float, threshold: float
) -> None:
    verdict = judged(
        facts(confidence=confidence, neighbours=tuple(near(s, relation) for s in similarities)),
        min_confidence=minimum,
        duplicate_threshold=threshold,
    )
    assert verdict.accepted == all(c.passed for c in verdict.checks)
    assert verdict.blocked_by == next((c.name for c in verdict.checks if not c.passed), None)
    assert verdict.accepted == (
        verdict.outcome in ("stored", "update", "conflict")
        or (verdict.outcome == "review" and not verdict.blocked_by)
    )


def test_ten_thousand_stored_facts_are_judged_anew_in_well_under_a_second() -> None:
    stored = [
        (
            Draft(TEXT),
            facts(
                confidence=i % 100 / 100,
                neighbours=tuple(near(j / 10, "reworded") for j in range(8)),
            ),
        )
        for i in range(10_000)
    ]
    started = time.process_time()
    verdicts = gate.judge_many(stored, GateSettings(min_confidence=0.5))
    assert time.process_time() - started < 0.9
    assert sum(v.checks[0].passed for v in verdicts) == 5_000


def test_replay_counts_and_names_every_flip_with_both_verdicts() -> None:
    drafts = [(Draft(TEXT), facts(confidence=c)) for c in (0.65, 0.75, 0.85)]
    before = [(d, f, gate.judge(d, f, GateSettings())) for d, f in drafts]
    lower = gate.replay(before, GateSettings(min_confidence=0.6))
    assert [f.index for f in lower.flips] == [0]
    assert (lower.newly_accepted, lower.newly_refused) == (1, 0)
    assert (lower.counts_before, lower.counts_after) == (
        {"rejected": 1, "stored": 2}, {"stored": 3},
    )  # fmt: skip
    higher = gate.replay(before, GateSettings(min_confidence=0.8))
    assert (higher.newly_accepted, higher.newly_refused) == (0, 1)
    assert gate.replay(before, GateSettings()).flips == ()
