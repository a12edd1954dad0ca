"""Ranking: candidates and settings → hits, and everything else with its reason.

Pure: no I/O, no clock. A hit's score is the sum of its terms' contributions (value × weight), to
1e-9. Every term's value is absolute in [0, 1]: nothing is stretched over the candidates at hand, so
the best of a bad pool stays bad. Hits and dropped are together exactly the candidates. Ties go to
the newer memory, then to the smaller id, whatever the order of the input.

Similarity is what the two channels say together. Nearness by vectors is the cosine, counted from
what unrelated texts have with this embedder (`unrelated_similarity` u, 0 for most):
d = (cosine − u) / (1 − u). `weighted_sum`: the chance that either channel is right, each with its
share, 1 − (1 − a·d)(1 − b·keyword), a = min(1, 2w), b = min(1, 2(1 − w)), w = `dense_weight`.
A keyword match only ever raises it; without one (and w ≥ 0.5) it is d itself. For w ≥ 0.5 the
order it gives does not depend on u. `rrf`: reciprocal ranks, (k + 1)/2 × Σ 1/(k + rank); the
threshold still looks at the absolute value, since a rank says nothing about nearness.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import lru_cache

from memcore.explanations import Comparison, LoggedRecall, Move, Replayed
from memcore.models import Candidate, Dropped, Hit, Ranking, Scope, ScoreTerm, maker
from memcore.rules import injection, lexical
from memcore.settings import RankingSettings

DEFAULT_CONFIDENCE = 0.8
USES_AT_HALF = 10
"""A memory used this often has a usage value of 0.5: n / (n + 10)."""

_NEGATIONS = frozenset(
    "no not never without don't doesn't didn't isn't aren't wasn't weren't can't cannot won't "
    "hasn't haven't stop stopped quit 不 没 無 无 未 别 勿 非".split()
)


def rank(
    candidates: Iterable[Candidate],
    settings: RankingSettings,
    *,
    now: datetime | None = None,
    threshold: float | None = None,
    limit: int | None = None,
    token_budget: int | None = None,
) -> Ranking:
    """`candidates` scored, cut at the similarity threshold, freed of near-duplicates, cut at the
    most a recall returns and, where a `token_budget` is given, at what fits into a prompt.

    `threshold` and `limit` replace the settings' own for this call; `now` is what recency counts
    from (None: the newest candidate).
    """
    floor = settings.similarity_threshold if threshold is None else threshold
    most = settings.max_recall if limit is None else limit
    pool = in_order(candidates, settings, now=now)
    dropped: list[Dropped] = []
    hits: list[Hit] = []
    kept: dict[str, _Kept] = {}
    beaten: list[Hit] = []
    above = 0
    for hit, value, candidate in pool:
        if floor is not None and not value >= floor:
            by = f"similarity {value:.3f} is {floor - value:.3f} below {floor:.3f}"
            dropped.append(_drop(hit, "below_threshold", by))
            continue
        above += 1
        memory_type = candidate.memory.memory_type
        peers = kept.get(memory_type)
        rival = peers.rival(candidate) if peers is not None else None
        if rival is not None:
            dropped.append(_drop(hit, *rival))
        elif len(hits) < most:
            hits.append(hit)
            if settings.dedupe != "off":
                if peers is None:
                    peers = kept[memory_type] = _Kept(settings)
                peers.add(candidate)
        else:
            beaten.append(hit)
    for place, hit in enumerate(beaten, most + 1):
        last = hits[-1]
        by = f"place {place} of {most}, {last.score - hit.score:.3f} behind {last.memory.id}"
        dropped.append(_drop(hit, "outranked", by))
    stages = {
        "candidates": len(pool),
        "above_threshold": above,
        "distinct": len(hits) + len(beaten),
        "top_k": len(hits),
    }
    if token_budget is not None:
        block = injection.block((injection.memory_line(h.memory) for h in hits), token_budget)
        for line in block.left_out:
            hit = next(h for h in hits if h.memory.id == line.id)
            hits.remove(hit)
            by = f"its {line.tokens} tokens do not fit into {token_budget} with the hits before it"
            dropped.append(_drop(hit, "over_budget", by))
        stages["within_budget"] = len(hits)
    return Ranking(tuple(hits), tuple(dropped), stages)


def in_order(
    candidates: Iterable[Candidate], settings: RankingSettings, *, now: datetime | None = None
) -> list[tuple[Hit, float, Candidate]]:
    """Every candidate scored, best first, with the similarity its threshold looks at and the
    candidate itself."""
    pool = list(candidates)
    if now is None:
        now = max((c.memory.created_at for c in pool), default=None)
    near = _nearness(settings)
    scored_as = _scorer(settings, now)
    ranked = settings.lexical and settings.fusion == "rrf"
    scored = []
    for candidate in pool:
        value = near(candidate)
        shown = similarity(candidate, settings) if ranked else value
        scored.append((scored_as(candidate, shown), value, candidate))
    scored.sort(key=lambda s: (-s[0].score, -s[0].memory.created_at.timestamp(), s[0].memory.id))
    return scored


def shown(terms: Sequence[ScoreTerm], digits: int = 3) -> tuple[list[tuple[str, float]], float]:
    """Contributions of the terms that have a weight and their sum, rounded so that what is shown
    adds up: what rounding leaves over goes where it was cut most (largest remainder)."""
    used = [(t.name, t.contribution * 10**digits) for t in terms if t.weight]
    total = round(sum(exact for _, exact in used))
    parts = {name: math.floor(exact) for name, exact in used}
    cut = sorted(used, key=lambda part: math.floor(part[1]) - part[1])
    for name, _ in cut[: total - sum(parts.values())]:
        parts[name] += 1
    return [(name, parts[name] / 10**digits) for name, _ in used], total / 10**digits


def compare(before: Sequence[str], after: Sequence[str]) -> Comparison:
    """Two orders of hits (memory ids, best first) beside each other."""
    then = {memory_id: place for place, memory_id in enumerate(before, 1)}
    now = {memory_id: place for place, memory_id in enumerate(after, 1)}
    lost = tuple(memory_id for memory_id in before if memory_id not in now)
    moves = tuple(Move(i, then.get(i), now.get(i)) for i in (*after, *lost))
    return Comparison(moves, tuple(i for i in after if i not in then), lost)


def replay(recalls: Iterable[LoggedRecall], settings: RankingSettings) -> tuple[Replayed, ...]:
    """Logged recalls ranked under `settings`, each beside what the agent got.
    Recency counts from the moment of the recall."""
    out = []
    for recall in recalls:
        ranked = rank(recall.candidates, settings, now=recall.at)
        after = [hit.memory.id for hit in ranked.hits]
        out.append(Replayed(recall, ranked, compare(recall.hits, after)))
    return tuple(out)


def similarity(candidate: Candidate, settings: RankingSettings) -> float:
    """The value of the similarity term, in [0, 1] (module docstring)."""
    if candidate.reranked is not None:
        return unit(candidate.reranked)
    if settings.lexical and settings.fusion == "rrf":
        k = settings.rrf_k
        ranks = (candidate.dense_rank, candidate.lexical_rank)
        return unit((k + 1) / 2 * sum(1 / (k + r) for r in ranks if r is not None))
    return absolute_similarity(candidate, settings)


def absolute_similarity(candidate: Candidate, settings: RankingSettings) -> float:
    """What the threshold is held against: nearness by either channel, in [0, 1]; what a reranker
    said, where one read the candidate."""
    return _nearness(settings)(candidate)


def _nearness(settings: RankingSettings) -> Callable[[Candidate], float]:
    """`absolute_similarity` under one setting, worked out once for many candidates."""
    unrelated = settings.unrelated_similarity
    of_dense = min(1.0, 2 * settings.dense_weight) if settings.lexical else 1.0
    of_keyword = min(1.0, 2 - 2 * settings.dense_weight) if settings.lexical else 0.0

    related = 1 - unrelated

    def near(candidate: Candidate) -> float:
        if candidate.reranked is not None:
            return unit(candidate.reranked)
        dense = of_dense * unit((unit(candidate.similarity) - unrelated) / related)
        keyword = candidate.lexical
        if not of_keyword or not keyword:
            return dense
        return unit(1 - (1 - dense) * (1 - of_keyword * unit(keyword)))

    return near


def unit(value: float | None) -> float:
    """`value` clamped to [0, 1]; 0 for None and NaN, so that no score is ever NaN."""
    if value is None or not value > 0:
        return 0.0
    return min(1.0, float(value))


def same_saying(one: str, other: str) -> float:
    """How nearly two texts say the same, in [0, 1]: Dice over their terms, and 0 when a number or
    a negation differs or each has a word of its own, since then they are two statements."""
    return _same(one, _keywords(one), other, _keywords(other))


def scored_of(candidate: Candidate, settings: RankingSettings, now: datetime | None) -> Hit:
    """`candidate` with its terms and their sum. `now`: what recency counts from."""
    return _scorer(settings, now)(candidate, similarity(candidate, settings))


def _scorer(settings: RankingSettings, now: datetime | None) -> Callable[[Candidate, float], Hit]:
    """Makes hits of candidates with their nearness; what the settings say is looked up once."""
    half_life = settings.recency_half_life_days
    of_similarity, of_confidence, of_scope, of_keyword, of_recency, of_usage = (
        settings.similarity_weight, settings.confidence_weight, settings.scope_weight,
        settings.keyword_weight, settings.recency_weight, settings.usage_weight,
    )  # fmt: skip
    # Many candidates have these in common.
    priorities = {
        scope: _term("scope", _priority(scope, settings, []), of_scope) for scope in Scope
    }
    no_keyword = _term("keyword", 0.0, of_keyword)
    unused = _term("usage", 0.0, of_usage)

    def scored(candidate: Candidate, nearness: float) -> Hit:
        memory = candidate.memory
        notes: list[str] = []
        confidence = memory.confidence
        if confidence is None or not 0 <= confidence <= 1:
            confidence = _confidence(confidence, notes)
        priority = priorities.get(memory.scope)
        if priority is None:
            priority = _term("scope", _priority(memory.scope, settings, notes), of_scope)
        keyword = unit(candidate.lexical)
        age = (now - memory.created_at).total_seconds() / 86400 if now else 0.0
        recency = 0.5 ** (age / half_life) if age > 0 else 1.0
        uses = memory.access_count
        usage = uses / (uses + USES_AT_HALF) if uses > 0 else 0.0
        score = (
            nearness * of_similarity + confidence * of_confidence + priority[1] * of_scope
            + keyword * of_keyword + recency * of_recency + usage * of_usage
        )  # fmt: skip
        terms = (
            _term("similarity", nearness, of_similarity),
            _term("confidence", confidence, of_confidence),
            priority,
            _term("keyword", keyword, of_keyword) if keyword else no_keyword,
            _term("recency", recency, of_recency),
            _term("usage", usage, of_usage) if usage else unused,
            # The cosine behind similarity, shown beside it; it counts through similarity only.
            _term("dense", unit(candidate.similarity), 0.0),
        )
        return _hit(memory, score, terms, tuple(notes) if notes else ())

    return scored


_hit = maker(Hit)
_dropped = maker(Dropped)


def _term(name: str, value: float, weight: float) -> ScoreTerm:
    return tuple.__new__(ScoreTerm, (name, value, weight))


def _confidence(value: float | None, notes: list[str]) -> float:
    if value is not None and 0 <= value <= 1:
        return value
    if value is None or not math.isfinite(value):
        notes.append(f"No usable confidence; {DEFAULT_CONFIDENCE} is assumed.")
        return DEFAULT_CONFIDENCE
    notes.append(f"Confidence {value:g} is outside 0 to 1 and counts as {unit(value):g}.")
    return unit(value)


def _priority(scope: Scope | str | None, settings: RankingSettings, notes: list[str]) -> float:
    name = scope if isinstance(scope, Scope) else str(scope or "").strip().lower()
    if name == Scope.USER:
        return settings.user_priority
    if name == Scope.PROJECT:
        return settings.project_priority
    if name == Scope.SESSION:
        return settings.session_priority
    notes.append(f"Unknown scope {str(scope)!r}; it counts as user scope.")
    return settings.user_priority


class _Kept:
    """Hits of one type, and whether one more candidate is needless beside them. Which hit has a
    term is looked up, so that a candidate is compared only with those it shares many words with."""

    def __init__(self, settings: RankingSettings) -> None:
        self._one_per_type = settings.dedupe == "one_per_type"
        self._enough = settings.dedupe_threshold
        self._hits: list[tuple[Candidate, frozenset[str]]] = []
        self._having: dict[str, list[int]] = {}

    def add(self, candidate: Candidate) -> None:
        terms = frozenset() if self._one_per_type else _terms(candidate)
        for term in terms:
            self._having.setdefault(term, []).append(len(self._hits))
        self._hits.append((candidate, terms))

    def rival(self, candidate: Candidate) -> tuple[str, str] | None:
        """Reason and detail when a kept hit makes this one needless."""
        memory = candidate.memory
        if self._one_per_type:
            best = self._hits[0][0].memory
            return "one_per_type", f"{best.id} is the best {memory.memory_type}"
        enough, hits, having = self._enough, self._hits, self._having
        mine = _terms(candidate)
        shared: dict[int, int] = {}
        for term in mine:
            if term in having:
                for at in having[term]:
                    shared[at] = shared.get(at, 0) + 1
        size = len(mine)
        near: Iterable[int] = [
            at for at, common in shared.items() if 2 * common >= enough * (size + len(hits[at][1]))
        ]
        # Most end here: too few words in common, whatever the rest says.
        if not near and enough > 0:
            return None
        if not enough > 0:
            near = range(len(hits))
        for at in sorted(near):
            other, theirs = hits[at]
            same = _same(memory.content, mine, other.memory.content, theirs)
            if same >= enough:
                return (
                    "near_duplicate",
                    f"says the same as {other.memory.id}: "
                    f"text similarity {same:.3f}, limit {enough:.3f}",
                )
        return None


def _drop(hit: Hit, reason: str, detail: str) -> Dropped:
    return _dropped(hit.memory, reason, detail, hit.score, hit.terms)


def _terms(candidate: Candidate) -> frozenset[str]:
    found = candidate.keywords
    return _keywords(candidate.memory.content) if found is None else found


@lru_cache(maxsize=4096)
def _keywords(text: str) -> frozenset[str]:
    return frozenset(lexical.index_terms(text))


def _same(one: str, a: frozenset[str], other: str, b: frozenset[str]) -> float:
    """`same_saying` of two texts with their terms."""
    total = len(a) + len(b)
    same = 2 * len(a & b) / total if total else 0.0
    if not same:
        return 0.0
    own = (a - b, b - a)
    if all(any(not lexical.is_pair(t) for t in terms) for terms in own):
        return 0.0
    if any(c.isdigit() for terms in own for t in terms for c in t):
        return 0.0
    return same if _negations(one) == _negations(other) else 0.0


def _negations(text: str) -> frozenset[str]:
    lowered = text.lower().replace("’", "'")
    return _NEGATIONS & {*lowered.split(), *lowered}
