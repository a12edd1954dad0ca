"""Many drafts at once come out as they would one by one."""

import dataclasses
import random
import time

import pytest
from sqlalchemy import text

from memcore import Actor, Draft, Scope, Subject
from memcore.errors import PermissionDenied

OPERATOR = Actor("operator", operator=True)
TEXTS = [
    "Prefers oolong tea in the morning",
    "prefers oolong tea in the  morning.",
    "The standup is at 9:30 every day",
    "The standup is at 10:30 every day",
    "hm",
    "my password is Tr0ub4dor-and-3",
    "喜欢在阳台上看书",
    "不喜欢在阳台上看书",
    "Rides a bicycle to the office",
    "Rides a bicycle to the office on most days",
]


def test_the_outcomes_are_those_of_adding_one_by_one(core, library, who):
    other = core.libraries.create("other", embedder="hash:64")
    drafts = [Draft(t, scope=s) for t in TEXTS for s in (Scope.USER, Scope.PROJECT)]
    random.Random(7).shuffle(drafts)
    one_by_one = [core.memories.add(d, subject=who) for d in drafts]
    at_once = core.memories.add_many(drafts, subject=dataclasses.replace(who, library_id=other.id))
    assert [a.verdict.outcome for a in one_by_one] == [j.verdict.outcome for j in at_once]
    assert [a.verdict.blocked_by for a in one_by_one] == [j.verdict.blocked_by for j in at_once]

    def stored(library_id):
        with core.runtime.engine.connect() as connection:
            return connection.execute(
                text(
                    "SELECT m.content, m.status, m.scope, m.content_hash, m.keywords::text, "
                    "m.superseded_by IS NOT NULL, e.embedding::text FROM memories m "
                    "JOIN embeddings e ON e.memory_id = m.id WHERE library_id = :l "
                    "ORDER BY m.scope, m.content"
                ),
                {"l": library_id},
            ).all()

    assert stored(library.id) == stored(other.id)


def test_what_is_stored_already_is_met_as_well(core, who):
    first = core.memories.add_explicit_memory("Keeps bees on the roof", subject=who).memory
    (judged,) = core.memories.add_many([Draft("keeps  bees on the roof")], subject=who)
    assert (judged.verdict.outcome, judged.verdict.matched_id) == ("duplicate", first.id)


def test_a_draft_that_cannot_be_used_is_refused_alone(core, library):
    subject = Subject(library.id, "u1")
    drafts = [
        Draft("Lives near the river"),
        Draft("Needs a session", scope=Scope.SESSION),
        Draft("\x00 "),
        Draft("Confidence is off", confidence=float("nan")),
        Draft("Learns French"),
    ]
    judged = core.memories.add_many(drafts, subject=subject)
    assert [bool(j.memory) for j in judged] == [True, False, False, False, True]
    assert "session id" in judged[1].refused
    assert "no text" in judged[2].refused
    assert "nan" in judged[3].refused


def test_nobody_imports_for_somebody_else(core, library, who):
    with pytest.raises(PermissionDenied):
        core.memories.add_many([Draft("A budget of ten")], subject=who, actor=Actor("u2"))
    assert core.memories.browse(actor=OPERATOR).total == 0


def test_every_draft_leaves_a_decision_and_no_secret(core, who):
    core.memories.add_many([Draft(t) for t in TEXTS], subject=who)
    with core.runtime.engine.connect() as connection:
        found = connection.execute(text("SELECT d::text FROM decisions d")).scalars().all()
    assert len(found) == len(TEXTS)
    assert not any("Tr0ub4dor" in line for line in found)


def test_progress_reaches_the_end(core, who):
    seen = []
    drafts = [Draft(f"Statement about topic {n} {n * 7919}") for n in range(600)]
    core.memories.add_many(drafts, subject=who, progress=lambda *at: seen.append(at))
    assert seen[-1] == (600, 600)


def test_a_thousand_drafts_take_a_fraction_of_adding_them_singly(core, library, who):
    words = [f"{a}{b}" for a in "bdfgklmnprst" for b in ("an", "el", "im", "or", "ut")]
    rng = random.Random(1)
    drafts = [Draft(" ".join(rng.sample(words, 8))) for _ in range(1000)]
    started = time.perf_counter()
    for draft in drafts[:40]:
        core.memories.add(draft, subject=dataclasses.replace(who, user_id="slow"))
    one = (time.perf_counter() - started) / 40
    started = time.perf_counter()
    core.memories.add_many(drafts, subject=who)
    many = (time.perf_counter() - started) / 1000
    assert many < one
