"""Recalls as figures and tables: scores by term, stages, what was dropped, two rankings compared.
Draws nothing, does no I/O."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import tzinfo
from typing import Any

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from memcore.explanations import Comparison, Replayed, WhyNot
from memcore.models import Candidate, Hit, Ranking, SearchResult
from memcore.rules import ranking
from memcore.settings import SPECS
from memcore.text import shorten
from pages.shared import present

STAGES = {
    "searched": "Searched",
    "candidates": "Candidates",
    "above_threshold": "Above the threshold",
    "distinct": "Without near-duplicates",
    "top_k": "Hits",
    "within_budget": "In the prompt",
}
REASONS = {
    "below_threshold": "below the threshold",
    "near_duplicate": "near-duplicate",
    "one_per_type": "one per type",
    "outranked": "outranked",
    "over_budget": "over the token budget",
}
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d.*\+00:00$")
CHECKS = {
    "library_disabled": "Library",
    "agent_off": "Agent's memory",
    "other_library": "In this library",
    "status": "Status",
    "expired": "Expiry",
    "scope": "Scope",
    "visibility": "Visibility",
    "other_agent": "Agent",
    "vector": "Vector",
    "not_matched": "Words",
    "candidates": "Candidate",
    "threshold": "Threshold",
    "distinct": "Near-duplicates",
    "top_k": "Place",
}


def score_bars(hits: Sequence[Hit], *, widest: float = 0.0, columns: int = 26) -> go.Figure:
    """One stacked bar per hit, best on top, one colour per term that counts. `widest`: right end of
    the axis, for two figures side by side; `columns`: how wide a hit's text may be."""
    fig = present.figure(height=86 + 32 * max(1, len(hits)))
    texts = [narrow(h.memory.content, columns) + "  " if columns else "" for h in hits]
    labels = [
        f"{place}  {text}<b>{ranking.shown(h.terms)[1]:.3f}</b>"
        for place, (h, text) in enumerate(zip(hits, texts, strict=True), 1)
    ]
    for name, color in present.TERM_COLORS.items():
        terms = [next(t for t in h.terms if t.name == name) for h in hits]
        if not any(t.weight for t in terms):
            continue
        fig.add_bar(
            y=labels, x=[t.contribution for t in terms], name=name, orientation="h",
            marker_color=color, customdata=[(t.value, t.weight) for t in terms],
            hovertemplate="%{customdata[0]:.3f} × %{customdata[1]:g} = %{x:.3f}"
            f"<extra>{name}</extra>",
        )  # fmt: skip
    fig.update_layout(barmode="stack", legend={"traceorder": "normal"})
    fig.update_yaxes(autorange="reversed", ticks="")
    fig.update_xaxes(range=[0, widest or max((h.score for h in hits), default=1.0)], nticks=4)
    return fig


def narrow(text: str, columns: int) -> str:
    """`text` as a chart's label: one line, at most so many columns; an ideograph takes two."""
    # The chart reads a few tags; a memory's text has none.
    text = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;")
    width = 0
    for place, char in enumerate(text):
        width += 2 if unicodedata.east_asian_width(char) in "WF" else 1
        if width > columns:
            return text[:place].rstrip() + "…"
    return text


def funnel(stages: Mapping[str, int]) -> go.Figure:
    """How many were left after each stage."""
    names = [STAGES.get(name, name) for name in stages]
    counts = list(stages.values())
    before = [counts[0], *counts[:-1]] if counts else []
    fig = present.figure(height=52 + 30 * len(names), legend=False)
    fig.add_bar(
        y=names, x=counts, orientation="h", marker_color="#8A92A6",
        text=[
            f"{n:,}" if n == was else f"{n:,} (−{was - n:,})"
            for n, was in zip(counts, before, strict=True)
        ],
        textposition="outside", cliponaxis=False, hoverinfo="skip",
    )  # fmt: skip
    fig.update_yaxes(autorange="reversed", ticks="")
    fig.update_xaxes(visible=False, range=[0, max(counts, default=1) * 1.3 or 1])
    return fig


def sums(hit: Hit) -> str:
    """The score as people add it up: similarity 0.366 (0.732 × 0.5) + … = 0.741. What is shown
    does add up."""
    values = {t.name: (t.value, t.weight) for t in hit.terms}
    parts, total = ranking.shown(hit.terms)
    said = " + ".join(
        f"{name} {part:.3f} ({values[name][0]:.3f} × {values[name][1]:g})" for name, part in parts
    )
    return f"{said} = **{total:.3f}**"


def channels(candidate: Candidate | None) -> str:
    """What each channel said of a memory: cosine, place, words that matched."""
    if candidate is None:
        return ""
    said = []
    if candidate.dense_rank is not None:
        said.append(f"cosine {candidate.similarity:.3f}, place {candidate.dense_rank} by vector")
    if candidate.lexical_rank is not None:
        words = " ".join(candidate.matched[:8])
        said.append(
            f"{candidate.lexical:.0%} of the query by keyword, "
            f"place {candidate.lexical_rank}: {words}"
        )
    if candidate.reranked is not None:
        said.append(f"reranked to {candidate.reranked:.3f}")
    return " · ".join(said) or "neither channel found it near"


def dropped(result: SearchResult | Ranking) -> pd.DataFrame:
    """What did not become a hit, with its reason; indexed by memory id."""
    rows = result.dropped
    texts = {s.memory.id: s.memory.content for s in (*result.hits, *rows)}
    return pd.DataFrame(
        {
            "memory": [shorten(d.memory.content, 160) for d in rows],
            "reason": [REASONS.get(d.reason, d.reason) for d in rows],
            "score": [d.score for d in rows],
            "similarity": [d.terms[0].value if d.terms else None for d in rows],
            "detail": [named(d.detail, texts) for d in rows],
        },
        index=pd.Index([d.memory.id for d in rows], name="id"),
    )


def dropped_columns() -> dict[str, Any]:
    return {
        "memory": st.column_config.TextColumn("Memory", width=330),
        "reason": st.column_config.TextColumn("Reason", width=130),
        "score": st.column_config.NumberColumn("Score", format="%.3f", width=70),
        "similarity": st.column_config.NumberColumn("Similarity", format="%.3f", width=80),
        "detail": st.column_config.TextColumn("Detail", width=420),
    }


def compared(
    comparison: Comparison, before: Ranking, after: Ranking, texts: Mapping[str, str]
) -> pd.DataFrame:
    """Places and scores of one recall under two settings."""
    scores = [
        {s.memory.id: s.score for s in (*ranking.hits, *ranking.dropped)}
        for ranking in (before, after)
    ]
    moves = comparison.moves
    return pd.DataFrame(
        {
            "memory": [shorten(texts.get(m.memory_id, ""), 120) for m in moves],
            "move": [moved(m.before, m.after) for m in moves],
            "before": [m.before for m in moves],
            "after": [m.after for m in moves],
            "score_before": [scores[0].get(m.memory_id) for m in moves],
            "score_after": [scores[1].get(m.memory_id) for m in moves],
        }
    )


def compared_columns() -> dict[str, Any]:
    number, column = st.column_config.NumberColumn, st.column_config.TextColumn
    return {
        "memory": column("Memory", width="medium"),
        "move": column("Change", width="small"),
        "before": number("Place A", width="small"),
        "after": number("Place B", width="small"),
        "score_before": number("Score A", format="%.3f", width="small"),
        "score_after": number("Score B", format="%.3f", width="small"),
    }


def moved(before: int | None, after: int | None) -> str:
    """A change of place in a word: new, lost, ↑ 2, ↓ 1, same."""
    if before is None:
        return "new"
    if after is None:
        return "lost"
    if before == after:
        return "same"
    return f"↑ {before - after}" if after < before else f"↓ {after - before}"


def replays(rows: Sequence[Replayed], agents: Mapping[str, str], zone: tzinfo) -> pd.DataFrame:
    """Logged recalls beside what other settings make of them."""
    return pd.DataFrame(
        {
            "query": [shorten(r.recall.query, 120) for r in rows],
            "moved": [
                sum(m.before != m.after and None not in (m.before, m.after)
                    for m in r.comparison.moves)
                for r in rows
            ],
            "gained": [len(r.comparison.gained) for r in rows],
            "lost": [len(r.comparison.lost) for r in rows],
            "hits": [len(r.recall.hits) for r in rows],
            "agent": [agents.get(r.recall.subject.agent_id or "", "") for r in rows],
            "user": [r.recall.subject.user_id for r in rows],
            "at": present.local_times((r.recall.at for r in rows), zone),
            "total": [r.recall.timings.get("total") for r in rows],
        },
        index=pd.Index([r.recall.id for r in rows], name="id"),
    )  # fmt: skip


def replay_columns(zone: tzinfo) -> dict[str, Any]:
    number, column = st.column_config.NumberColumn, st.column_config.TextColumn
    return {
        "query": column("Query", width=250),
        "moved": number("Moved", width=70, help="Hits that stay but change their place"),
        "gained": number("Gained", width=70, help="Hits only under the settings tried"),
        "lost": number("Lost", width=60, help="Hits the agent got, missing now"),
        "hits": number("Hits then", width=80),
        "agent": column("Agent", width=90),
        "user": column("User", width=80),
        "at": st.column_config.DatetimeColumn(
            f"When ({present.zone_label(zone)})", format="YYYY-MM-DD HH:mm", width=140
        ),
        "total": number("Took (ms)", format="%.0f", width=80),
    }


def checks(why: WhyNot, texts: Mapping[str, str]) -> pd.DataFrame:
    """Every step on the way to a hit, each with what was observed beside its limit."""
    return pd.DataFrame(
        {
            "step": [CHECKS.get(c.name, c.name) for c in why.checks],
            "outcome": [["passed" if c.passed else "stopped here"] for c in why.checks],
            "observed": [_value(c.observed) for c in why.checks],
            "limit": [_value(c.limit) for c in why.checks],
            "note": [named(c.note, texts) for c in why.checks],
        }
    )


def check_columns() -> dict[str, Any]:
    column = st.column_config.TextColumn
    return {
        "step": column("Step", width=120),
        "outcome": st.column_config.MultiselectColumn(
            "Outcome", width=110, options=["passed", "stopped here"], color=["green", "red"]
        ),
        "observed": column("Observed", width=120),
        "limit": column("Limit", width=150),
        "note": column("Note", width=420),
    }


def change(name: str, before: Any, after: Any) -> str:
    """One setting moved, as a sentence part: max recall from 8 to 12."""
    label = name.replace("_", " ")
    if name in SPECS or before is not None:
        return f"{label} from {_value(before)} to {_value(after)}"
    return f"{label}: {_value(after)}"


def named(detail: str, texts: Mapping[str, str]) -> str:
    """`detail` with each memory's id replaced by some of its text."""
    return _UUID.sub(
        lambda id: f"“{shorten(texts[id[0]], 40)}”" if texts.get(id[0]) else id[0], detail
    )


def _value(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float):
        return f"{value:.3f}".rstrip("0").rstrip(".")
    text = str(value)
    if _UUID.fullmatch(text):
        return text[:8] + "…"
    return text[:16].replace("T", " ") + " UTC" if _MOMENT.match(text) else text
