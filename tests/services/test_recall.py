"""Recall against a real PostgreSQL: what is found, what is not and what it costs to look."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from sqlalchemy import text

from memcore.core import Core
from memcore.database import queries
from memcore.embeddings import Vectors
from memcore.embeddings.hashing import HashEmbedder
from memcore.errors import EndpointTimeout, InvalidInput, LibraryDisabled
from memcore.models import Actor, Library, Memory, Message, Role, Subject
from memcore.rules import lexical, ranking
from memcore.settings import RankingSettings

OPERATOR = Actor("op", operator=True)


def put(core: Core, library: Library, content: str, *, vector: Any = None, **given: Any) -> str:
    """A row and its vector straight into the tables, gate and all left out; returns its id."""
    from memcore.database.tables import EmbeddingRow, MemoryRow

    scope = str(given.setdefault("scope", "user"))
    user = given.setdefault("user_id", "u1")
    given.setdefault("scope_id", user if scope == "user" else given.get("project_id") or "s1")
    given.setdefault("created_by", user)
    given.setdefault("content_hash", uuid.uuid4().hex)
    if vector is None:
        vector = core.runtime.embedder_for(library).embed_documents([content])[0]
    with core.runtime.engine.begin() as connection:
        queries.introduce(connection, user, given.get("project_id"))
        row = connection.execute(
            MemoryRow.__table__.insert()  # type: ignore[attr-defined]
            .values(
                library_id=library.id, content=content, memory_type=given.pop("type", "fact"),
                **queries.keywords("", content), **given,
            )
            .returning(MemoryRow.id)
        )  # fmt: skip
        memory_id = str(row.scalar_one())
        if vector is not False:
            connection.execute(
                EmbeddingRow.__table__.insert().values(  # type: ignore[attr-defined]
                    collection_id=library.collection_id, memory_id=memory_id,
                    content_hash=given["content_hash"], embedding=np.asarray(vector, "float32"),
                )
            )  # fmt: skip
    return memory_id


def contents(result: Any) -> list[str]:
    return [hit.memory.content for hit in result.hits]


def search(core: Core, who: Subject, query: str, **given: Any) -> list[str]:
    return contents(core.memories.search_memories(query, subject=who, **given))


@pytest.mark.parametrize("mode", ["hybrid", "vector", "keyword"])
def test_what_is_not_recallable_is_on_no_channel(core: Core, library: Library, mode: Any) -> None:
    me = Subject(library.id, "u1", project_id="p1", session_id="s1", agent_id=_agent(core, "a1"))
    other = _agent(core, "a2")
    past = datetime.now(UTC) - timedelta(seconds=1)
    mine = put(core, library, "harbour cranes are red", agent_id=me.agent_id)
    put(core, library, "harbour cranes are old", status="archived")
    put(core, library, "harbour cranes are tall", status="suppressed")
    put(core, library, "harbour cranes are loud", status="superseded")
    put(core, library, "harbour cranes are late", expires_at=past)
    put(core, library, "harbour cranes are hers", user_id="u10")
    put(
        core,
        library,
        "harbour cranes are private",
        user_id="u2",
        scope="project",
        project_id="p1",
        visibility="owner_only",
    )
    put(core, library, "harbour cranes are elsewhere", scope="project", project_id="p2")
    put(core, library, "harbour cranes are of another session", scope="session", scope_id="s10")
    put(core, library, "harbour cranes are another agent's", agent_id=other)
    shared = put(core, library, "harbour cranes are shared", agent_id=other, shared=True)
    team = put(
        core,
        library,
        "harbour cranes are public",
        user_id="u2",
        scope="project",
        project_id="p1",
        visibility="public",
    )
    session = put(core, library, "harbour cranes are near", scope="session", scope_id="s1")
    result = core.memories.search_memories("harbour cranes", subject=me, mode=mode, k=50)
    seen = {c.memory.id for c in result.candidates}
    assert seen == {mine, shared, team, session}
    assert result.documents == 4


def _agent(core: Core, name: str) -> str:
    (library,) = core.libraries.all()
    return core.libraries.create_agent(name, library_id=library.id).id


def test_members_only_memories_open_and_close_with_membership(core: Core, library: Library) -> None:
    put(
        core,
        library,
        "the vault code word is heron",
        user_id="u2",
        scope="project",
        project_id="p1",
        visibility="members",
    )
    guest = Subject(library.id, "u7", project_id="p1")
    assert search(core, guest, "vault heron") == []
    core.people.join("p1", "u7", Role.VIEWER, actor=Actor("u2"))
    assert search(core, guest, "vault heron") == ["the vault code word is heron"]
    core.people.leave("p1", "u7", actor=Actor("u2"))
    assert search(core, guest, "vault heron") == []


def test_somebody_else_asking_sees_no_more_than_they_may(
    core: Core, library: Library, who: Subject
) -> None:
    put(core, library, "keeps bees on the roof")
    assert contents(core.memories.recall("bees", subject=who, actor=Actor("u2"))) == []
    assert contents(core.memories.recall("bees", subject=who, actor=OPERATOR)) == [
        "keeps bees on the roof"
    ]


def test_the_filter_comes_before_the_limit(core: Core, library: Library) -> None:
    near = np.eye(1, 64, 0)[0]
    for i in range(60):
        put(core, library, f"near stranger {i}", user_id="u1", vector=near)
    for i in range(12):
        put(
            core,
            library,
            f"far own {i:02d}",
            user_id="u2",
            vector=near * 0.2 + np.eye(1, 64, i + 1)[0],
        )
    found = core.memories.search_memories("x", subject=Subject(library.id, "u2"), k=10)
    assert len(found.hits) == 10
    assert all(hit.memory.user_id == "u2" for hit in found.hits)


def test_a_hundred_hits_can_be_had(core: Core, library: Library, who: Subject) -> None:
    for i in range(120):
        put(core, library, f"entry {uuid.UUID(int=i).hex[-8:]} of the ledger")
    assert len(search(core, who, "ledger", k=100)) == 100


@pytest.mark.parametrize("query", ["海鸥", "缆车", "运维 脚本", "脚"])
def test_chinese_is_found_by_keyword_alone(
    core: Core, library: Library, who: Subject, query: str
) -> None:
    put(core, library, "缆车运维脚本的代号是海鸥")
    put(core, library, "午后有阵雨")
    assert search(core, who, query, mode="keyword") == ["缆车运维脚本的代号是海鸥"]


def test_keyword_mode_needs_no_embedding(
    core: Core, library: Library, who: Subject, monkeypatch: Any
) -> None:
    put(core, library, "Deploys with Ansible")
    monkeypatch.setattr(HashEmbedder, "embed_query", _must_not_be_called)
    assert search(core, who, "ansible", mode="keyword") == ["Deploys with Ansible"]


def _must_not_be_called(*_: object) -> Vectors:
    raise AssertionError("an embedding was asked for")


def test_when_vectors_cannot_be_had_keywords_answer_and_it_says_so(
    core: Core, library: Library, who: Subject, monkeypatch: Any
) -> None:
    put(core, library, "Deploys with Ansible")

    def down(*_: object) -> Vectors:
        raise EndpointTimeout()

    monkeypatch.setattr(HashEmbedder, "embed_query", down)
    result = core.memories.search_memories("ansible", subject=who)
    assert contents(result) == ["Deploys with Ansible"]
    assert result.mode == "keyword"
    assert "Vectors were not searched" in result.notice
    with pytest.raises(EndpointTimeout):
        core.memories.search_memories("ansible", subject=who, mode="vector")


@pytest.mark.parametrize("query", ["", "   ", "\x00", "\u200b\n"])
def test_a_blank_query_shows_the_newest_and_says_so_without_embedding(
    core: Core, library: Library, who: Subject, query: str, monkeypatch: Any
) -> None:
    monkeypatch.setattr(HashEmbedder, "embed_query", _must_not_be_called)
    now = datetime.now(UTC)
    for days, content in ((3, "oldest"), (1, "newest"), (2, "middle")):
        put(core, library, content, created_at=now - timedelta(days=days), confidence=days / 4)
    result = core.memories.search_memories(query, subject=who)
    assert contents(result) == ["newest", "middle", "oldest"]
    assert "blank" in result.notice
    assert result.mode == "recent"


@pytest.mark.parametrize("query", ["abc\x00def", "长" * 20_000, "?!…", "' & | ! \\ ( :*", "\ud800"])
def test_odd_queries_are_answered(core: Core, library: Library, who: Subject, query: str) -> None:
    put(core, library, "anything at all")
    result = core.memories.search_memories(query, subject=who)
    assert len(result.hits) == 1
    assert ("characters" in result.notice) == (len(query) > 4000)


def test_a_threshold_that_nothing_meets_says_how_many_were_below(core: Core, who: Subject) -> None:
    core.libraries.set(who.library_id, {"similarity_threshold": 0.99})
    library = core.libraries.get(who.library_id)
    for content in ("likes rye bread", "owns a kayak"):
        put(core, library, content)
    result = core.memories.search_memories("quantum chromodynamics", subject=who)
    assert result.hits == ()
    assert "All 2 candidates" in result.notice
    assert {d.reason for d in result.dropped} == {"below_threshold"}


def test_a_disabled_library_is_not_recalled(core: Core, who: Subject) -> None:
    core.libraries.set(who.library_id, {"enabled": False})
    with pytest.raises(LibraryDisabled):
        core.memories.search_memories("x", subject=who)


@pytest.mark.parametrize("given", [{"k": 0}, {"k": 1001}, {"mode": "psychic"}])
def test_unusable_arguments_are_refused_by_name(core: Core, who: Subject, given: Any) -> None:
    with pytest.raises(InvalidInput, match=next(iter(given))):
        core.memories.search_memories("x", subject=who, **given)


def test_a_row_without_a_vector_and_one_with_a_stale_vector_are_found_by_keyword(
    core: Core, library: Library, who: Subject
) -> None:
    bare = put(core, library, "paddles on Sundays", vector=False)
    stale = put(core, library, "paddles on Mondays")
    with core.runtime.engine.begin() as connection:
        connection.execute(text("UPDATE embeddings SET content_hash = 'old'"))
    result = core.memories.search_memories("paddles", subject=who)
    assert {hit.memory.id for hit in result.hits} == {bare, stale}
    assert all(c.similarity == 0 for c in result.candidates)
    assert core.memories.search_memories("zzz", subject=who, mode="vector").hits != ()


def test_a_sure_memory_far_down_both_channels_is_not_lost_unseen(
    core: Core, library: Library, who: Subject
) -> None:
    query = core.runtime.embedder_for(library).embed_query("rowing")
    side = np.eye(1, 64, int(np.argmin(np.abs(query))))[0]
    for i in range(80):
        put(
            core,
            library,
            f"crowd member number {uuid.UUID(int=i).hex[-6:]}",
            confidence=0.1,
            vector=query * 0.6 + side * 0.8,
        )
    sure = put(
        core,
        library,
        "settled in a meeting",
        confidence=1.0,
        scope="session",
        vector=query * 0.5 + side * 0.86,
    )
    result = core.memories.search_memories("rowing", subject=who, k=1)
    assert [hit.memory.id for hit in result.hits] == [sure]


SETTINGS = [
    RankingSettings(),
    RankingSettings(dense_weight=0.8, unrelated_similarity=0.3, keyword_weight=0.4),
    RankingSettings(dense_weight=0.2, recency_weight=0.5, usage_weight=0.3, confidence_weight=0),
    RankingSettings(similarity_threshold=0.2, lexical=False),
    RankingSettings(similarity_threshold=0.15, dedupe="off", user_priority=0.9),
    RankingSettings(dedupe="one_per_type", scope_weight=1),
]


@pytest.mark.parametrize("settings", SETTINGS)
def test_sql_chooses_candidates_by_the_score_that_ranking_gives(
    core: Core, library: Library, who: Subject, settings: RankingSettings
) -> None:
    """The hits of a narrow recall are those of ranking everything there is."""
    words = "amber birch cedar delta ember fjord grove heron inlet jetty knoll larch".split()
    chance = np.random.default_rng(5)
    for _ in range(150):
        put(
            core, library, " ".join(chance.choice(words, 4)) + f" {chance.integers(10**6)}",
            confidence=float(chance.random()), type=str(chance.choice(["fact", "habit", "event"])),
            access_count=int(chance.integers(50)),
            created_at=datetime.now(UTC) - timedelta(days=int(chance.integers(300))),
            **({"scope": "session"} if chance.random() < 0.3 else {}),
        )  # fmt: skip
    everything = core.memories.recall("birch heron fog", subject=who, settings=settings, k=1000)
    assert len(everything.candidates) == 150
    narrow = core.memories.recall("birch heron fog", subject=who, settings=settings, k=3)
    assert len(narrow.candidates) < 100
    wanted = ranking.rank(
        everything.candidates, replace(everything.ranking, max_recall=3), now=datetime.now(UTC)
    )
    assert [h.memory.id for h in narrow.hits] == [h.memory.id for h in wanted.hits]
    assert [h.score for h in narrow.hits] == pytest.approx([h.score for h in wanted.hits], abs=1e-6)


def test_keyword_match_is_what_the_rule_says(core: Core, library: Library, who: Subject) -> None:
    texts = ["green tea in spring", "black tea", "绿茶 spring picking", "coffee", "tea tea tea"]
    for content in texts:
        put(core, library, content)
    query = "green tea picking 绿茶 unicorn"
    terms = lexical.query_terms(query)
    stored = [set(lexical.index_terms(t)) for t in texts]
    weights = lexical.weigh(terms, len(texts), {t: sum(t in s for s in stored) for t in terms})
    found = {c.memory.content: c for c in core.memories.recall(query, subject=who).candidates}
    for content, has in zip(texts, stored, strict=True):
        expected = lexical.coverage(has & set(terms), weights)
        assert found[content].lexical == pytest.approx(expected, abs=1e-9)
        assert set(found[content].matched) == has & set(terms)


def test_cosines_are_exact_and_clamped(core: Core, library: Library, who: Subject) -> None:
    v = np.full(64, 0.3, "float32")
    same = put(core, library, "same direction", vector=v * 2.5)
    opposite = put(core, library, "other way", vector=-v)
    embedder = core.runtime.embedder_for(library)
    object.__setattr__(embedder, "embed_query", lambda _: v)
    found = {c.memory.id: c for c in core.memories.recall("q", subject=who).candidates}
    assert found[same].similarity == pytest.approx(1, abs=1e-6)
    assert found[same].similarity <= 1
    assert found[opposite].similarity == 0
    assert (found[same].dense_rank, found[opposite].dense_rank) == (1, 2)


def test_a_vector_without_length_is_last_and_no_number_is_odd(
    core: Core, library: Library, who: Subject
) -> None:
    near = core.runtime.embedder_for(library).embed_query("plums")
    zero = put(core, library, "empty direction", vector=near * 0)
    put(core, library, "ripe fruit", vector=near)
    result = core.memories.recall("plums", subject=who, mode="vector")
    assert [h.memory.id for h in result.hits][-1] == zero
    found = next(c for c in result.candidates if c.memory.id == zero)
    assert (found.similarity, found.dense_rank) == (0, None)
    assert all(np.isfinite(h.score) for h in result.hits)


def test_a_library_embedded_anew_by_another_process_is_read_again(
    core: Core, library: Library, who: Subject
) -> None:
    put(core, library, "likes figs")
    search(core, who, "figs")  # the library is known from here on
    with core.runtime.engine.begin() as connection:
        new = queries.create_collection(connection, library.id, "hash:64", 64)
        connection.execute(text("UPDATE libraries SET collection_id = :new"), {"new": new})
        queries.drop_collections(connection, [library.collection_id])
    assert search(core, who, "figs") == ["likes figs"]


def test_a_rewriter_and_a_reranker_are_used_where_the_library_says_so(
    core: Core, library: Library, who: Subject
) -> None:
    class Rewriter:
        def rewrite(self, query: str, conversation: Sequence[Message] = ()) -> str:
            return query + " lighthouse"

    class Reranker:
        def relevance(self, query: str, texts: Sequence[str]) -> list[float]:
            assert "lighthouse" in query
            return [1.0 if "keeper" in text else 0.0 for text in texts]

    for content in ("lighthouse on the rock", "keeper of bees", "lighthouse lamp"):
        put(core, library, content)
    core.runtime = replace(
        core.runtime, rewriter_for=lambda _: Rewriter(), reranker_for=lambda _: Reranker()
    )
    assert "keeper" not in search(core, who, "light")[0]
    core.libraries.set(library.id, {"query_rewrite": True, "rerank": True})
    result = core.memories.search_memories("light", subject=who)
    assert result.query == "light lighthouse"
    assert "rewritten from 'light'" in result.notice
    assert result.hits[0].memory.content == "keeper of bees"
    assert result.hits[0].terms[0].value == 1
    assert {"rewrite", "rerank"} < set(result.timings)


def test_a_library_that_wants_a_chat_model_and_names_none_says_what_to_set(
    core: Core, library: Library, who: Subject
) -> None:
    put(core, library, "likes figs")
    core.libraries.set(library.id, {"query_rewrite": True, "rerank": True})
    result = core.memories.search_memories("figs", subject=who)
    assert contents(result) == ["likes figs"]
    assert "not rewritten" in result.notice
    assert "Nothing was reranked" in result.notice
    assert result.notice.count("Set extraction_model on the Libraries page") == 2


def test_a_token_budget_drops_whole_hits_and_says_so(
    core: Core, library: Library, who: Subject
) -> None:
    for i in range(6):
        put(core, library, f"likes figs of kind {uuid.UUID(int=i).hex[-6:]}")
    result = core.memories.search_memories("figs", subject=who, token_budget=180)
    assert 0 < len(result.hits) < 6
    assert {d.reason for d in result.dropped} == {"over_budget"}
    assert result.stages["within_budget"] == len(result.hits)


def test_a_recall_is_one_round_trip_for_three_scopes_and_both_channels(
    core: Core, library: Library, who: Subject, tmp_path: Any
) -> None:
    put(core, library, "likes figs")
    for _ in range(2):
        core.memories.recall("figs", subject=who)
    log = tmp_path / "protocol"
    with log.open("w") as out:
        core.runtime.reader.run(lambda driver: driver.pgconn.trace(out.fileno()))
        core.memories.recall("figs", subject=who)
        core.runtime.reader.run(lambda driver: driver.pgconn.untrace())
    sent = log.read_text()
    assert sent.count("Sync") == sent.count("Execute") == 1
    assert "\tQuery\t" not in sent


def test_a_server_that_was_restarted_is_found_again(
    core: Core, library: Library, who: Subject
) -> None:
    put(core, library, "likes figs")
    core.memories.recall("figs", subject=who)
    backend = core.runtime.reader.run(lambda driver: driver.info.backend_pid)
    with core.runtime.engine.begin() as connection:
        connection.execute(text("SELECT pg_terminate_backend(:pid)"), {"pid": backend})
    assert search(core, who, "figs") == ["likes figs"]


def test_only_an_agents_search_counts_as_use_and_is_logged(core: Core, library: Library) -> None:
    memory_id = put(core, library, "sings bass")
    person = Subject(library.id, "u1")
    agent = replace(person, agent_id=_agent(core, "a1"))

    def stored() -> Memory:
        return core.memories.get(memory_id, actor=OPERATOR)

    for _ in range(3):
        assert core.memories.search_memories("bass", subject=person).recall_id is None
        core.memories.recall("bass", subject=agent)
    assert (stored().access_count, stored().last_used_at) == (0, None)
    result = core.memories.search_memories("bass", subject=agent)
    assert stored().access_count == 1
    assert stored().last_used_at is not None
    assert stored().relevance == pytest.approx(result.hits[0].terms[0].value)
    assert result.recall_id is not None


def test_agents_are_told_apart_until_the_library_shares(core: Core, library: Library) -> None:
    one, two = _agent(core, "one"), _agent(core, "two")
    put(core, library, "prefers trains", agent_id=one)
    put(core, library, "trains leave at nine", user_id="u1")
    subject = Subject(library.id, "u1", agent_id=two)
    assert search(core, subject, "trains") == ["trains leave at nine"]
    core.libraries.set(library.id, {"share_between_agents": True})
    assert set(search(core, subject, "trains")) == {"prefers trains", "trains leave at nine"}
