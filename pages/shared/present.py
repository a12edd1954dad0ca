"""Value objects → tables, column configurations and Plotly figures. Draws nothing, does no I/O.

Figures leave fonts, paper and grid to Streamlit's theme, which follows light and dark; colours that
carry meaning (status, score terms) are middle tones legible on both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta, tzinfo
from typing import Any

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from memcore.models import Agent, Memory, Status
from memcore.rules.aggregation import Statement, field_text
from memcore.services.history import Figures
from memcore.services.libraries import Pair
from memcore.text import shorten

PLOTLY = {"displayModeBar": False, "scrollZoom": False}
"""`config=` for charts people read; leave it out where they lasso or zoom."""

COLORWAY = ("#5A5DE8", "#14A594", "#E0962B", "#D4548E", "#4598DB", "#8E9C3C", "#9A6FE0", "#8A92A6")
"""Middle tones, told apart by people with any colour vision, legible on light and dark."""

STATUS_COLORS = {
    Status.ACTIVE: "#2E9E6B",
    Status.ARCHIVED: "#8A92A6",
    Status.SUPPRESSED: "#D9822B",
    Status.SUPERSEDED: "#8F6FE0",
}
TERM_COLORS = {
    "similarity": "#6366F1",
    "confidence": "#14A594",
    "scope": "#E0962B",
    "keyword": "#D4548E",
    "recency": "#4598DB",
    "usage": "#8E9C3C",
}
"""One colour per score term on every page that shows scores."""


# ---- words and times ----------------------------------------------------------------------------


def when(moment: datetime | None, zone: tzinfo) -> str:
    """`moment` in the viewer's zone, to the minute, labelled: 2026-11-30 16:30 (UTC+8)."""
    if moment is None:
        return "never"
    local = moment.astimezone(zone)
    return f"{local:%Y-%m-%d %H:%M} ({offset(local)})"


def offset(local: datetime) -> str:
    """The zone of an aware moment as people write it: UTC, UTC+8, UTC−3:30."""
    delta = local.utcoffset()
    minutes = int(delta.total_seconds() // 60) if delta else 0
    if not minutes:
        return "UTC"
    hours, rest = divmod(abs(minutes), 60)
    return f"UTC{'+' if minutes > 0 else '−'}{hours}" + (f":{rest:02d}" if rest else "")


def zone_label(zone: tzinfo) -> str:
    """What a table's time columns carry in their headings."""
    return offset(datetime.now(zone))


def ago(moment: datetime | None, now: datetime) -> str:
    """How long ago, in one unit: just now, 5 min ago, 3 h ago, 12 days ago."""
    if moment is None:
        return "never"
    seconds = (now - moment).total_seconds()
    if seconds < 60:
        return "just now" if seconds > -60 else "in the future"
    for size, unit in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= size:
            count = int(seconds // size)
            return f"{count} {'day' if unit == 'days' and count == 1 else unit} ago"
    return "just now"


def size(octets: int) -> str:
    """Bytes as people read them: 532 B, 12.4 kB, 3.1 MB."""
    amount = float(octets)
    for unit in ("B", "kB", "MB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"


def count(number: int, one: str, many: str | None = None) -> str:
    """1 memory, 1,204 memories. `many` defaults to `one` + s."""
    plural = many or (one[:-1] + "ies" if one.endswith("y") else one + "s")
    return f"{number:,} {one if number == 1 else plural}"


# ---- tables -------------------------------------------------------------------------------------


def local_times(moments: Iterable[datetime | None], zone: tzinfo) -> Any:
    """Times as naive local ones: the table shows them as they are, the heading says the zone."""
    values = [m.astimezone(zone).replace(tzinfo=None) if m else None for m in moments]
    # An array, not a series: a series would be aligned to the table's index by its own.
    return pd.array(values, dtype="datetime64[us]")


def memories(rows: Sequence[Memory], zone: tzinfo) -> pd.DataFrame:
    """One line per memory, indexed by id. Draw with `memory_columns(zone)`."""
    return pd.DataFrame(
        {
            "content": [shorten(m.title + ": " + m.content if m.title else m.content, 240)
                        for m in rows],
            "type": [[m.memory_type.replace("_", " ")] for m in rows],
            "status": [[str(m.status)] for m in rows],
            "scope": [f"{m.scope} · {m.scope_id}" for m in rows],
            "confidence": [m.confidence for m in rows],
            "created": local_times((m.created_at for m in rows), zone),
            "last_used": local_times((m.last_used_at for m in rows), zone),
            "tags": [list(m.tags) for m in rows],
        },
        index=pd.Index([m.id for m in rows], name="id"),
    )  # fmt: skip


def memory_columns(zone: tzinfo) -> dict[str, Any]:
    label = zone_label(zone)
    return {
        "content": st.column_config.TextColumn("Memory", width=None),
        "type": st.column_config.MultiselectColumn("Type", width=112),
        "status": status_column(),
        "scope": st.column_config.TextColumn("Scope", width=140),
        "confidence": st.column_config.ProgressColumn(
            "Confidence", min_value=0, max_value=1, format="%.2f", width=110
        ),
        "created": st.column_config.DatetimeColumn(
            f"Created ({label})", format="YYYY-MM-DD HH:mm", width=140
        ),
        "last_used": st.column_config.DatetimeColumn(
            f"Last recalled ({label})", format="YYYY-MM-DD HH:mm", width=140
        ),
        "tags": st.column_config.ListColumn("Tags", width="medium"),
    }


def statements(rows: Sequence[Statement], zone: tzinfo) -> pd.DataFrame:
    """One line per statement of a profile, in its order."""
    return pd.DataFrame(
        {
            "type": [s.memory_type.replace("_", " ") for s in rows],
            "statement": [s.content for s in rows],
            "confidence": [s.confidence for s in rows],
            "said": [1 + len(s.also) for s in rows],
            "replaces": [len(s.replaced) for s in rows],
            "updated": local_times((s.updated_at for s in rows), zone),
        }
    )


def fields(written: Mapping[str, Any]) -> pd.DataFrame:
    """A profile's handwritten fields as text, to edit."""
    texts = [field_text(value) for value in written.values()]
    return pd.DataFrame({"field": list(written), "value": texts}, dtype="string")


def agents(rows: Sequence[Agent], libraries: Mapping[str, str]) -> pd.DataFrame:
    """One line per agent, indexed by id. `libraries`: id → name."""
    return pd.DataFrame(
        {
            "name": [a.name for a in rows],
            "library": [libraries.get(a.library_id or "", "unbound") for a in rows],
            "memory": ["on" if a.memory_enabled else "off" for a in rows],
            "extraction": ["on" if a.extraction_enabled else "off" for a in rows],
            "window": [a.short_term_memory_size for a in rows],
        },
        index=pd.Index([a.id for a in rows], name="id"),
    )


AGENT_COLUMNS = {
    "name": st.column_config.TextColumn("Agent"),
    "library": st.column_config.TextColumn("Library"),
    "memory": st.column_config.TextColumn("Memory", help="Recalls and stores"),
    "extraction": st.column_config.TextColumn(
        "Extraction", help="Its conversations are read for new memories"
    ),
    "window": st.column_config.NumberColumn(
        "Short-term window", format="%d messages", help="Messages kept word for word"
    ),
}


def pairs(rows: Sequence[Pair], threshold: float) -> pd.DataFrame:
    """Pairs of memories, most similar first, each judged against the threshold."""
    return pd.DataFrame(
        {
            "similarity": [p.similarity for p in rows],
            "taken": ["same?" if p.similarity >= threshold else "different" for p in rows],
            "first": [shorten(p.first, 160) for p in rows],
            "second": [shorten(p.second, 160) for p in rows],
        }
    )


PAIR_COLUMNS = {
    "similarity": st.column_config.NumberColumn("Similarity", format="%.3f", width=90),
    "taken": st.column_config.TextColumn("At this threshold", width=120),
    "first": st.column_config.TextColumn("One memory"),
    "second": st.column_config.TextColumn("The other"),
}


def status_column() -> Any:
    """The status as a coloured word."""
    return st.column_config.MultiselectColumn(
        "Status",
        width=104,
        options=[str(s) for s in Status],
        color=["green", "gray", "orange", "violet"],
    )


# ---- figures ------------------------------------------------------------------------------------


def figure(*, height: int = 320, legend: bool = True) -> go.Figure:
    """An empty figure in the house style: no chart junk, room for labels, legend on top."""
    fig = go.Figure()
    fig.update_layout(
        height=height,
        colorway=COLORWAY,
        margin={"l": 8, "r": 8, "t": 36 if legend else 8, "b": 8},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        showlegend=legend,
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0, "title": None},
        hoverlabel={"align": "left"},
        bargap=0.28,
    )
    fig.update_xaxes(zeroline=False, title=None, automargin=True)
    fig.update_yaxes(zeroline=False, title=None, automargin=True)
    return fig


def per_day(figures: Figures, today: date) -> go.Figure:
    """Memories stored on each day of the window, days without any included."""
    days = [today - timedelta(days=n) for n in range(figures.window_days, -1, -1)]
    fig = figure(height=240, legend=False)
    fig.add_bar(
        x=days,
        y=[figures.stored_by_day.get(day, 0) for day in days],
        hovertemplate="%{x|%d %b}: %{y} stored<extra></extra>",
    )
    fig.update_xaxes(tickformat="%d %b", showgrid=False)
    fig.update_yaxes(tickformat=",d", rangemode="tozero", nticks=5)
    return fig


def by_type(figures: Figures) -> go.Figure:
    """Active memories of each type, most frequent on top, each bar with its number."""
    order = sorted(figures.types.items(), key=lambda item: item[1])
    fig = figure(height=240, legend=False)
    fig.add_bar(
        x=[n for _, n in order],
        y=[t.replace("_", " ") for t, _ in order],
        text=[f"{n:,}" for _, n in order],
        textposition="outside",
        cliponaxis=False,
        orientation="h",
        hovertemplate="%{y}: %{x}<extra></extra>",
    )
    fig.update_xaxes(visible=False)
    fig.update_yaxes(showgrid=False, ticksuffix="  ")
    return fig
