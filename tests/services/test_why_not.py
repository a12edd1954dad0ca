"""Absence explained: the first reason, and the least single change that ends it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from sqlalchemy import text

from memcore.core import Core
from memcore.errors import NotFound
from memcore.explanations import WhyNot
from memcore.models import Actor, Library, Subject
from tests.services.test_recall import put

OPERATOR = Actor("op", operator=True)
PAST = datetime.now(UTC) - timedelta(hours=1)


def ask(
    core: Core, memory_id: str, who: Subject, query: str = "tin whistle", **given: Any
) -> WhyNot:
    return core.memories.why_not(memory_id, query, subject=who, actor=OPERATOR, **given)


@pytest.mark.parametrize(
    ("given", "reason", "setting", "after"),
    [
        ({"status": "archived"}, "status", "status", "active"),
        ({"status": "suppressed"}, "status", "status", "active"),
        ({"expires_at": PAST}, "expired", "expires_at", None),
        ({"user_id": "u2"}, "scope", "user", "u2"),
        ({"scope": "session", "scope_id": "s9"}, "scope", "session", "s9"),
        ({"user_id": "u2", "scope": "project", "project_id": "p1", "visibility": "owner_only"},
         "visibility", "visibility", "members"),
        ({"user_id": "u2", "scope": "project", "project_id": "p1"},
         "visibility", "membership", "p1"),
    ],
)  # fmt: skip
def test_what_the_predicate_keeps_out_names_its_part(
    core: Core, library: Library, who: Subject, given: Any, reason: str, setting: str, after: Any
) -> None:
    memory_id = put(core, library, "plays the tin whistle", **given)
    why = ask(core, memory_id, who)
    assert (why.present, why.reason) == (False, reason)
    assert why.change is not None
    assert (why.change.setting, why.change.after) == (setting, after)
    assert next(c.name for c in why.checks if not c.passed) == reason


def test_two_obstacles_are_both_shown_and_no_single_change_is_promised(
    core: Core, library: Library, who: Subject
) -> None:
    why = ask(core, put(core, library, "tin whistle", status="archived", expires_at=PAST), who)
    assert why.reason == "status"
    assert [c.name for c in why.checks if not c.passed] == ["status", "expired"]
    assert why.changes == ()


def test_a_disabled_library_and_another_library_are_reasons(
    core: Core, library: Library, who: Subject
) -> None:
    other = core.libraries.create("elsewhere", embedder="hash:64")
    elsewhere = put(core, other, "tin whistle")
    assert ask(core, elsewhere, who).reason == "other_library"
    memory_id = put(core, library, "tin whistle")
    core.libraries.set(library.id, {"enabled": False})
    why = ask(core, memory_id, who)
    assert why.reason == "library_disabled"
    assert why.change is not None
    assert why.change.setting == "enabled"


def test_another_agents_memory_is_explained(core: Core, library: Library, who: Subject) -> None:
    one, two = (core.libraries.create_agent(n, library_id=library.id).id for n in ("one", "two"))
    memory_id = put(core, library, "tin whistle", agent_id=one)
    assert ask(core, memory_id, replace(who, agent_id=two)).reason == "other_agent"
    assert ask(core, memory_id, replace(who, agent_id=one)).present
    assert ask(core, memory_id, who).present


def test_nobody_learns_of_a_memory_they_may_not_see(
    core: Core, library: Library, who: Subject
) -> None:
    hidden = put(core, library, "tin whistle", user_id="u2")
    for memory_id in (hidden, "00000000-0000-0000-0000-000000000000", "nonsense"):
        with pytest.raises(NotFound):
            core.memories.why_not(memory_id, "tin", subject=who)


@pytest.mark.parametrize("stale", [True, False])
def test_a_missing_or_stale_vector_is_the_reason_when_keywords_do_not_save_it(
    core: Core, library: Library, who: Subject, stale: bool
) -> None:
    memory_id = put(core, library, "brass band", vector=None if stale else False)
    if stale:
        with core.runtime.engine.begin() as connection:
            connection.execute(text("UPDATE embeddings SET content_hash = 'of an older text'"))
    for i in range(9):
        put(core, library, f"tin whistle number {i}")
    why = ask(core, memory_id, who)
    assert why.reason == ("stale_vector" if stale else "no_vector")
    assert why.change is not None
    assert why.change.setting == "vector"
    assert ask(core, memory_id, who, "brass band").present


def test_below_the_threshold_says_by_how_much_and_the_least_lowering_works(
    core: Core, library: Library, who: Subject
) -> None:
    core.libraries.set(library.id, {"similarity_threshold": 0.9})
    query = core.runtime.embedder_for(library).embed_query("zither")
    side = np.eye(1, 64, int(np.argmin(np.abs(query))))[0]
    memory_id = put(core, library, "plays in a band", vector=query * 0.6 + side * 0.8)
    why = ask(core, memory_id, who, "zither")
    assert why.reason == "below_threshold"
    assert "0.300 below 0.900" in why.detail
    assert why.change is not None
    assert why.change.setting == "similarity_threshold"
    assert why.change.after == pytest.approx(0.6, abs=0.011)
    core.libraries.set(library.id, {"similarity_threshold": why.change.after})
    assert ask(core, memory_id, who, "zither").present


def test_lost_to_a_near_duplicate_names_the_winner(
    core: Core, library: Library, who: Subject
) -> None:
    winner = put(core, library, "Practises the tin whistle daily", confidence=0.9)
    loser = put(core, library, "practises the tin whistle daily!", confidence=0.8)
    why = ask(core, loser, who)
    assert why.reason == "near_duplicate"
    assert winner in why.detail
    assert "dedupe" in {c.setting for c in why.changes}


def test_outranked_says_by_whom_and_each_offered_change_brings_it_in(
    core: Core, library: Library, who: Subject
) -> None:
    words = "oak elm ash yew fir box".split()
    better = [put(core, library, f"tin whistle made of {w}", confidence=0.9) for w in words[:3]]
    memory_id = put(core, library, "whistle while it rains", confidence=0.7)
    why = ask(core, memory_id, who, k=2)
    assert why.reason == "outranked"
    assert any(other in why.detail for other in better)
    assert why.change is not None
    assert why.changes == tuple(sorted(why.changes, key=lambda c: c.steps))
    base = core.memories.recall("tin whistle", subject=who, k=2).ranking
    for change in why.changes:
        changed = replace(base, **{change.setting: change.after})
        result = core.memories.recall("tin whistle", subject=who, settings=changed)
        assert memory_id in [h.memory.id for h in result.hits], change


def test_far_down_both_channels_says_at_which_place(
    core: Core, library: Library, who: Subject
) -> None:
    query = core.runtime.embedder_for(library).embed_query("tin whistle")
    side = np.eye(1, 64, int(np.argmin(np.abs(query))))[0]
    for i in range(60):
        put(core, library, f"{i} bagpipes", vector=query + side * 0.01 * i)
    memory_id = put(core, library, "collects stamps", vector=-query)
    why = ask(core, memory_id, who)
    assert why.reason == "not_a_candidate"
    assert "Place 61 by vector of 61" in why.detail
    candidates = next(c for c in why.checks if c.name == "candidates")
    assert (candidates.observed, candidates.limit) == (61, 24)


def test_keyword_mode_says_that_no_word_matched(core: Core, library: Library, who: Subject) -> None:
    memory_id = put(core, library, "collects stamps")
    why = ask(core, memory_id, who, mode="keyword")
    assert why.reason == "not_matched"


def test_a_hit_says_its_place_and_shows_its_terms(
    core: Core, library: Library, who: Subject
) -> None:
    put(core, library, "tin whistle", confidence=1.0)
    why = ask(core, put(core, library, "tin drum", confidence=0.5), who)
    assert (why.present, why.place, why.reason, why.changes) == (True, 2, "recalled", ())
    assert all(c.passed for c in why.checks)
    assert why.hit is not None
    assert why.hit.score == pytest.approx(sum(t.contribution for t in why.hit.terms))


def test_asking_leaves_no_trace(core: Core, library: Library, who: Subject) -> None:
    memory_id = put(core, library, "tin whistle")
    agent = replace(who, agent_id=core.libraries.create_agent("one", library_id=library.id).id)
    ask(core, memory_id, agent)
    assert core.memories.get(memory_id, actor=OPERATOR).access_count == 0
    with core.runtime.engine.connect() as connection:
        assert connection.scalar(text("SELECT count(*) FROM recalls")) == 0
