"""The read path: query → one SQL round trip → pure ranking → hits, and the rest with its reason.

`recall` looks and leaves no trace; it is what the console uses. `search_memories` is what agents
use: it counts the use of its hits and writes the recall log, both in one statement.
"""

from __future__ import annotations

import random
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Literal

from psycopg.errors import UndefinedTable

from memcore.database import queries, recall_log
from memcore.database import recall as sql
from memcore.embeddings import Vectors
from memcore.errors import (
    ConfigError,
    EndpointError,
    InvalidInput,
    InvalidVector,
    NotFound,
    StoreError,
)
from memcore.models import (
    Actor,
    Candidate,
    Dropped,
    Hit,
    Library,
    MemoryType,
    Message,
    Scope,
    SearchResult,
    Status,
    Subject,
)
from memcore.rules import lexical, ranking
from memcore.services.libraries import LibraryService
from memcore.services.runtime import Runtime
from memcore.settings import LibrarySettings, RankingSettings
from memcore.text import clean
from memcore.vectors import Where, checked

Mode = Literal["hybrid", "vector", "keyword"]

LONGEST_QUERY = 4000
"""Characters of a query that are searched for; what comes after is left out and said so."""
MOST = 1000
"""Most hits of one recall."""
OVERFETCH = 3
"""Candidates of each kind for each hit asked for, and at least as many as LEAST_CANDIDATES."""
LEAST_CANDIDATES = 20
_SAMPLE = 0.1
_NO_MODEL = (
    "the library names no chat model. Set extraction_model on the Libraries page, or switch this "
    "stage off."
)


class Recalling:
    """Part of MemoryService: finding."""

    _runtime: Runtime
    _libraries: LibraryService

    def _open(self, subject: Subject) -> tuple[Library, LibrarySettings]:
        raise NotImplementedError  # Adding has it

    def search_memories(
        self,
        query: str,
        *,
        subject: Subject,
        actor: Actor | None = None,
        k: int | None = None,
        mode: Mode | None = None,
        token_budget: int | None = None,
        types: Collection[MemoryType] = (),
        scopes: Collection[Scope] = (),
        conversation: Sequence[Message] = (),
    ) -> SearchResult:
        """Memories of the subject's scopes for `query`, best first, with what was dropped and why.

        `k` replaces the library's max_recall; `token_budget` also drops what would not fit into a
        prompt of that many tokens; `types` and `scopes` keep only those, where given;
        `conversation` is what was said before, for a library that rewrites queries. When an agent
        asks, its hits count as used and the recall is logged as the library says. Raises
        InvalidInput, LibraryDisabled, AgentMemoryOff, NotFound, EndpointError (in `vector` mode;
        otherwise keywords still answer, and `notice` says so), DatabaseError.
        """
        result = self.recall(
            query, subject=subject, actor=actor, k=k, mode=mode, token_budget=token_budget,
            types=types, scopes=scopes, conversation=conversation,
        )  # fmt: skip
        if subject.agent_id is None or result.mode == "recent":
            return result
        started = time.perf_counter()
        keep = self._runtime.settings_of(self._libraries.get(subject.library_id)).settings
        logged = keep.recall_log == "all" or (
            keep.recall_log == "sampled" and random.random() < _SAMPLE
        )
        with self._runtime.engine.begin() as connection:
            recall_id = recall_log.used(connection, result, subject, logged=logged)
        spent = (time.perf_counter() - started) * 1e3
        timings = {**result.timings, "log": spent, "total": result.timings["total"] + spent}
        return replace(result, recall_id=recall_id, timings=timings)

    def recall(
        self,
        query: str,
        *,
        subject: Subject,
        actor: Actor | None = None,
        k: int | None = None,
        mode: Mode | None = None,
        token_budget: int | None = None,
        settings: RankingSettings | None = None,
        also: Sequence[str] = (),
        types: Collection[MemoryType] = (),
        scopes: Collection[Scope] = (),
        conversation: Sequence[Message] = (),
    ) -> SearchResult:
        """What `search_memories` finds, without a trace: no counter moves, nothing is logged.

        `settings` replaces the library's ranking; `also` names memories to fetch as candidates
        wherever they stand, as far as a recall may return them at all.
        """
        if types or scopes:
            # Ranked among all, then narrowed: a filter changes no score.
            _, kept = self._open(subject)
            wide = self.recall(
                query, subject=subject, actor=actor, k=MOST, mode=mode, settings=settings,
                also=also, conversation=conversation,
            )  # fmt: skip
            most = k or (settings or kept.ranking).max_recall
            return _narrowed(wide, types, scopes, most)
        clock = _Clock()
        library, kept = self._open(subject)
        actor = actor or Actor(subject.user_id)
        if k is not None and not 1 <= k <= MOST:
            raise InvalidInput(f"k is {k}, outside its range from 1 to {MOST}.")
        chosen = settings or kept.ranking
        notices: list[str] = []
        asked = clean(query)
        if len(asked) > LONGEST_QUERY:
            notices.append(
                f"The query has {len(asked)} characters; the first {LONGEST_QUERY} were searched."
            )
            asked = asked[:LONGEST_QUERY]
        if not asked:
            return self._recent(query, subject, actor, kept, chosen, k, clock)
        if kept.query_rewrite:
            asked = self._rewritten(asked, conversation, kept, notices)
            clock.lap("rewrite")
        mode, chosen = _effective(mode, chosen)
        terms = lexical.query_terms(asked) if mode != "vector" else ()
        vector = None
        if mode != "keyword":
            try:
                vector = checked(
                    self._runtime.embedder_for(library).embed_query(asked), library.dimensions
                )[0]
            except (EndpointError, InvalidVector) as error:
                if mode == "vector":
                    raise
                mode, chosen = _effective("keyword", chosen)
                notices.append(f"Vectors were not searched, only keywords. {error}")
        clock.lap("embed")
        if k is not None:
            chosen = replace(chosen, max_recall=k)
        each = candidates_each(chosen)
        try:
            pool = self._pool(
                library, kept, subject, actor, chosen, terms, vector, each, also, mode, notices
            )
        except UndefinedTable:
            # The library was embedded anew a moment ago and its former collection is gone.
            self._libraries.forget()
            if self._libraries.get(library.id).collection_id == library.collection_id:
                raise
            return self.recall(
                query, subject=subject, actor=actor, k=k, mode=mode, token_budget=token_budget,
                settings=settings, also=also, conversation=conversation,
            )  # fmt: skip
        candidates = pool.candidates
        clock.lap("sql")
        if kept.rerank:
            candidates = self._reranked(asked, candidates, chosen, kept, notices)
            clock.lap("rerank")
        now = datetime.now(UTC)
        ranked = ranking.rank(candidates, chosen, now=now, token_budget=token_budget)
        clock.lap("rank")
        stages = {"searched": pool.documents, **ranked.stages}
        if mode == "keyword" and not terms:
            notices.append("The query has no word to search for.")
        floor = chosen.similarity_threshold
        below = sum(d.reason == "below_threshold" for d in ranked.dropped)
        if not ranked.hits and below:
            notices.append(f"All {below} candidates are below the similarity threshold {floor:g}.")
        return SearchResult(
            query=asked, hits=ranked.hits, dropped=ranked.dropped, stages=stages,
            timings=clock.done(), candidates=candidates, notice=" ".join(notices), mode=mode,
            terms=terms, documents=pool.documents, ranking=chosen, at=now,
        )  # fmt: skip

    # ---- parts

    def _pool(
        self,
        library: Library,
        kept: LibrarySettings,
        subject: Subject,
        actor: Actor,
        chosen: RankingSettings,
        terms: Sequence[str],
        vector: Vectors | None,
        each: int,
        also: Sequence[str],
        mode: str,
        notices: list[str],
    ) -> sql.Pool:
        cosines: Mapping[str, float] | None = None
        common: dict[str, Any] = {
            "share_between_agents": kept.share_between_agents,
            "terms": terms,
            "each": each,
            "also": also,
        }
        if vector is not None and library.vector_store != "pgvector":
            try:
                cosines = self._elsewhere(library, kept, subject, actor, vector, each)
            except StoreError as error:
                if mode == "vector":
                    raise
                notices.append(f"Vectors were not searched, only keywords. {error}")
            vector = None
        return self._runtime.reader.run(
            lambda driver: sql.fetch(
                driver, subject, actor, chosen, vector=vector, cosines=cosines,
                collection_id=library.collection_id, **common,
            )
        )  # fmt: skip

    def _elsewhere(
        self,
        library: Library,
        kept: LibrarySettings,
        subject: Subject,
        actor: Actor,
        vector: Vectors,
        each: int,
    ) -> dict[str, float]:
        """Memory id → cosine of the nearest in another store. It knows scopes and statuses, but
        not who may see what, so more is asked for until enough of it may be recalled."""
        store = self._runtime.store_for(library)
        where = Where(scopes=queries.scopes_of(subject), statuses=(Status.ACTIVE,))
        wanted = each
        while True:
            matches = store.query(vector, wanted, where)
            found = {m.id: m.similarity for m in matches}
            if len(matches) < wanted:
                return found
            with self._runtime.engine.connect() as connection:
                allowed = queries.count_recallable(
                    connection, subject, actor, list(found),
                    share_between_agents=kept.share_between_agents,
                )  # fmt: skip
            if allowed >= each:
                return found
            wanted *= 4

    def _recent(
        self,
        query: str,
        subject: Subject,
        actor: Actor,
        kept: LibrarySettings,
        chosen: RankingSettings,
        k: int | None,
        clock: _Clock,
    ) -> SearchResult:
        """For a blank query: the newest memories, newest first, and a notice."""
        with self._runtime.engine.connect() as connection:
            newest = sql.newest(
                connection, subject, actor,
                share_between_agents=kept.share_between_agents, limit=k or chosen.max_recall,
            )  # fmt: skip
        clock.lap("sql")
        candidates = tuple(Candidate(memory, 0.0) for memory in newest)
        now = datetime.now(UTC)
        hits = tuple(ranking.scored_of(c, chosen, now) for c in candidates)
        clock.lap("rank")
        return SearchResult(
            query="", hits=hits, dropped=(), stages={"candidates": len(hits), "top_k": len(hits)},
            timings=clock.done(), candidates=candidates, mode="recent", ranking=chosen,
            at=now,
            notice="The query is blank, so these are the newest memories; nothing was searched.",
        )  # fmt: skip

    def _rewritten(
        self,
        query: str,
        conversation: Sequence[Message],
        kept: LibrarySettings,
        notices: list[str],
    ) -> str:
        try:
            rewriter = self._runtime.rewriter_for(kept)
            if rewriter is None:
                notices.append(f"The query was not rewritten: {_NO_MODEL}")
                return query
            rewritten = clean(rewriter.rewrite(query, conversation))[:LONGEST_QUERY]
        except (EndpointError, ConfigError, NotFound) as error:
            notices.append(f"The query was not rewritten. {error}")
            return query
        if rewritten and rewritten != query:
            notices.append(f"The query was rewritten from {query!r}.")
        return rewritten or query

    def _reranked(
        self,
        query: str,
        candidates: tuple[Candidate, ...],
        chosen: RankingSettings,
        kept: LibrarySettings,
        notices: list[str],
    ) -> tuple[Candidate, ...]:
        if not candidates:
            return candidates
        best = sorted(candidates, key=lambda c: -ranking.similarity(c, chosen))
        best = best[: kept.rerank_candidates]
        try:
            reranker = self._runtime.reranker_for(kept)
            if reranker is None:
                notices.append(f"Nothing was reranked: {_NO_MODEL}")
                return candidates
            said = reranker.relevance(query, [c.memory.content for c in best])
        except (EndpointError, ConfigError, NotFound) as error:
            notices.append(f"Nothing was reranked. {error}")
            return candidates
        if len(said) != len(best):
            notices.append(f"Nothing was reranked: {len(said)} answers for {len(best)} texts.")
            return candidates
        read = {c.memory.id: value for c, value in zip(best, said, strict=True)}
        return tuple(replace(c, reranked=read.get(c.memory.id)) for c in candidates)


def candidates_each(settings: RankingSettings) -> int:
    """How many of each kind are fetched as candidates."""
    return max(LEAST_CANDIDATES, OVERFETCH * settings.max_recall)


def _effective(mode: Mode | None, settings: RankingSettings) -> tuple[Mode, RankingSettings]:
    """The mode to run in and the ranking that fits it: a channel that is not searched has no
    weight."""
    if mode not in (None, "hybrid", "vector", "keyword"):
        raise InvalidInput(f"mode is {mode!r}, but takes one of hybrid, vector, keyword.")
    if mode is None:
        mode = "hybrid" if settings.lexical else "vector"
    if mode == "vector":
        return mode, replace(settings, lexical=False)
    if mode == "keyword":
        return mode, replace(settings, lexical=True, dense_weight=0.0)
    return mode, replace(settings, lexical=True)


def _narrowed(
    wide: SearchResult, types: Collection[MemoryType], scopes: Collection[Scope], k: int
) -> SearchResult:
    """`wide` with hits of these types and scopes alone, at most `k`; the rest is dropped with its
    reason."""
    hits: list[Hit] = []
    dropped = list(wide.dropped)
    for hit in wide.hits:
        memory = hit.memory
        if types and memory.memory_type not in types:
            reason, detail = "other_type", f"It is a {memory.memory_type}, which was not asked for."
        elif scopes and memory.scope not in scopes:
            reason, detail = "other_scope", f"It is {memory.scope} memory, which was not asked for."
        elif len(hits) >= k:
            reason, detail = "outranked", f"{k} of the wanted kind stand above it."
        else:
            hits.append(hit)
            continue
        dropped.append(Dropped(memory, reason, detail, hit.score, hit.terms))
    stages = {**wide.stages, "wanted": len(hits)}
    return replace(wide, hits=tuple(hits), dropped=tuple(dropped), stages=stages)


class _Clock:
    """Milliseconds of each step and in all."""

    def __init__(self) -> None:
        self._started = self._last = time.perf_counter()
        self._laps: dict[str, float] = {}

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self._laps[name] = (now - self._last) * 1e3
        self._last = now

    def done(self) -> dict[str, float]:
        return {**self._laps, "total": (time.perf_counter() - self._started) * 1e3}
