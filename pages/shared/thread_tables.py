"""LangGraph threads → tables and figures. Draws nothing, does no I/O."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, tzinfo
from typing import Any

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from memcore.services.checkpoints.decode import readable
from memcore.services.checkpoints.ledger import Archived, PrunePlan, Usage
from memcore.services.checkpoints.timeline import namespace_label
from memcore.services.checkpoints.values import (
    Change,
    Channel,
    PendingWrite,
    Source,
    Step,
    Thread,
    ThreadStatus,
    Timeline,
)
from memcore.text import shorten
from pages.shared import present
from pages.shared.messages import plain

COLORS = {
    ThreadStatus.WAITING: "#D9822B",
    ThreadStatus.FAILED: "#DB4453",
    ThreadStatus.UNFINISHED: "#4598DB",
    ThreadStatus.FINISHED: "#2E9E6B",
    ThreadStatus.PASSED: "#8A92A6",
}
SYMBOLS = {
    ThreadStatus.WAITING: "diamond",
    ThreadStatus.FAILED: "x",
    ThreadStatus.UNFINISHED: "triangle-right",
    ThreadStatus.FINISHED: "square",
    ThreadStatus.PASSED: "circle",
}
_LABELLED = 28
"""With more steps than this their names would overlap; they are in the tooltips then."""
_NODES, _LONGEST_LIST, _LONGEST_TEXT = 3000, 300, 4000
"""What a tree shows: values in all, items of one list, characters of one text."""
_IN_VIEW = 120
"""Steps the graph shows at once; older ones come into view by dragging."""


def place(source: Source) -> str:
    """Which database, for people, as Markdown."""
    return "memcore's own database" if source.own else plain(source.where)


# ---- tables -------------------------------------------------------------------------------------


def threads(rows: Sequence[Thread], zone: tzinfo, now: datetime) -> pd.DataFrame:
    """One line per thread. Draw with `thread_columns(zone)`."""
    return pd.DataFrame(
        {
            "status": [[str(t.status)] for t in rows],
            "thread": [t.thread_id for t in rows],
            "where": [", ".join(t.nodes) for t in rows],
            "since": [present.ago(t.last_activity, now) for t in rows],
            "steps": [t.checkpoints for t in rows],
            "size": [t.octets for t in rows],
            "who": [about(t.metadata) for t in rows],
            "last": present.local_times((t.last_activity for t in rows), zone),
        },
        index=pd.Index([t.thread_id for t in rows], name="id"),
    )


def thread_columns(zone: tzinfo) -> dict[str, Any]:
    label = present.zone_label(zone)
    return {
        "status": status_column(),
        "thread": st.column_config.TextColumn("Thread", width=180),
        "where": st.column_config.TextColumn(
            "At", width=90, help="Nodes that wait, failed or are due next"
        ),
        "since": st.column_config.TextColumn("Last activity", width=110),
        "last": st.column_config.DatetimeColumn(
            f"On ({label})", format="YYYY-MM-DD HH:mm", width=140
        ),
        "steps": st.column_config.NumberColumn("Steps", width=64, help="Checkpoints stored"),
        "size": st.column_config.NumberColumn("Size", format="bytes", width=76),
        "who": st.column_config.TextColumn("Metadata", width=260),
    }


def status_column() -> Any:
    return st.column_config.MultiselectColumn(
        "Status",
        width=110,
        options=[str(s) for s in ThreadStatus],
        color=["orange", "red", "blue", "green", "gray"],
    )


def about(metadata: Any) -> str:
    """Scalars that say whose thread it is; LangGraph's own keys left out."""
    own = ("source", "step", "parents", "run_id", "counters_since_delta_snapshot")
    return " · ".join(f"{k} {v}" for k, v in metadata.items()
                      if k not in own and isinstance(v, (str, int, float)))  # fmt: skip


def channels(rows: Sequence[Channel]) -> pd.DataFrame:
    """One line per channel, LangGraph's own last."""
    rows = sorted(rows, key=lambda c: c.internal)
    return pd.DataFrame(
        {
            "channel": [c.name for c in rows],
            "changed": [c.updated for c in rows],
            "size": [c.octets for c in rows],
            "stored": [
                f"{c.storage}, {c.deltas} writes since" if c.deltas else c.storage for c in rows
            ],
            "note": [c.problem or ("LangGraph's own" if c.internal else "") for c in rows],
        }
    )


CHANNEL_COLUMNS = {
    "channel": st.column_config.TextColumn("Channel", width=180),
    "changed": st.column_config.CheckboxColumn("Changed here", width=96),
    "size": st.column_config.NumberColumn("Size", format="bytes", width=84),
    "stored": st.column_config.TextColumn("Stored as", width=150),
    "note": st.column_config.TextColumn("Note", width=260),
}


def writes(rows: Sequence[PendingWrite]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "node": [w.node or "input" for w in rows],
            "channel": [w.channel for w in rows],
            "value": [text(w.value, 300) for w in rows],
            "size": [w.octets for w in rows],
            "task": [w.task_id for w in rows],
        }
    )


WRITE_COLUMNS = {
    "node": st.column_config.TextColumn("By", width=110),
    "channel": st.column_config.TextColumn("Channel", width=140),
    "value": st.column_config.TextColumn("Value", width=420),
    "size": st.column_config.NumberColumn("Size", format="bytes", width=84),
    "task": st.column_config.TextColumn("Task", width=120),
}


def changes(rows: Sequence[Change]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "path": [c.path for c in rows],
            "kind": [[c.kind] for c in rows],
            "before": ["" if c.kind == "added" else text(c.before, 400) for c in rows],
            "after": ["" if c.kind == "removed" else text(c.after, 400) for c in rows],
        }
    )


CHANGE_COLUMNS = {
    "path": st.column_config.TextColumn("Where", width=200),
    "kind": st.column_config.MultiselectColumn(
        "Change", options=["added", "changed", "removed"], color=["green", "blue", "red"], width=96
    ),
    "before": st.column_config.TextColumn("Before", width=280),
    "after": st.column_config.TextColumn("After", width=280),
}


def plan(found: PrunePlan, now: datetime) -> pd.DataFrame:
    said = {"idle": "whole, idle", "trim": "older ones", "keep": "nothing"}
    return pd.DataFrame(
        {
            "thread": [t.thread_id for t in found.threads],
            "goes": [said[t.rule] for t in found.threads],
            "checkpoints": [f"{len(t.dropped):,} of {t.checkpoints:,}" for t in found.threads],
            "size": [t.octets for t in found.threads],
            "held": [
                ", ".join(sorted({k.reason.replace("_", " ") for k in t.kept}))
                for t in found.threads
            ],
            "newest": [present.ago(t.newest, now) for t in found.threads],
        }
    )


PLAN_COLUMNS = {
    "thread": st.column_config.TextColumn("Thread", width=220),
    "goes": st.column_config.TextColumn("What goes", width=110),
    "checkpoints": st.column_config.TextColumn("Checkpoints", width=110),
    "size": st.column_config.NumberColumn("Frees", format="bytes", width=90),
    "held": st.column_config.TextColumn(
        "Held back", width=170, help="What a rule would drop but must stay, and why"
    ),
    "newest": st.column_config.TextColumn("Newest", width=110),
}


def archive(rows: Sequence[Archived], zone: tzinfo) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "thread": [a.thread_id for a in rows],
            "at": present.local_times((a.at for a in rows), zone),
            "what": ["whole, idle" if a.reason == "idle" else "older ones" for a in rows],
            "checkpoints": [a.checkpoints for a in rows],
            "size": [a.octets for a in rows],
            "kept": [a.stored_octets for a in rows],
            "restored": present.local_times((a.restored_at for a in rows), zone),
            "by": [a.by for a in rows],
        },
        index=pd.Index([a.id for a in rows], name="id"),
    )


def archive_columns(zone: tzinfo) -> dict[str, Any]:
    label = present.zone_label(zone)
    return {
        "thread": st.column_config.TextColumn("Thread", width=180),
        "at": st.column_config.DatetimeColumn(f"Archived ({label})", format="YYYY-MM-DD HH:mm"),
        "what": st.column_config.TextColumn("What", width=100),
        "checkpoints": st.column_config.NumberColumn("Checkpoints", width=96),
        "size": st.column_config.NumberColumn("Was", format="bytes", width=84),
        "kept": st.column_config.NumberColumn("Takes now", format="bytes", width=90),
        "by": st.column_config.TextColumn("By", width=90),
        "restored": st.column_config.DatetimeColumn(
            f"Restored ({label})", format="YYYY-MM-DD HH:mm"
        ),
    }


def tree(value: Any) -> Any:
    """A decoded value for `st.json`: long texts and lists cut with their size said, for a state of
    megabytes would stop the browser; numbers that JavaScript would round as text."""
    left = _NODES

    def cut(item: Any) -> Any:
        nonlocal left
        left -= 1
        if isinstance(item, str) and len(item) > _LONGEST_TEXT:
            return f"{item[:_LONGEST_TEXT]}… ({len(item):,} characters)"
        if isinstance(item, int) and abs(item) > 2**53:
            return str(item)
        if isinstance(item, list):
            room = max(1, min(_LONGEST_LIST, left))
            more = [f"… {len(item) - room:,} more"] if len(item) > room else []
            return [*(cut(x) for x in item[:room]), *more]
        if isinstance(item, dict):
            room = max(1, min(_LONGEST_LIST, left))
            some = {k: cut(v) for k, v in list(item.items())[:room]}
            return some | ({"…": f"{len(item) - room:,} more"} if len(item) > room else {})
        return item

    return cut(readable(value))


def text(value: Any, limit: int) -> str:
    """A decoded value on one line."""
    value = readable(value)
    return shorten(
        value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), limit
    )


# ---- figures ------------------------------------------------------------------------------------


def graph(line: Timeline, chosen: str, zone: tzinfo) -> go.Figure:
    """Checkpoints from left to right in the order they were made: a row for the main line, one for
    each branch and each subgraph call; lines lead from parent to child."""
    steps = sorted(line.steps, key=lambda s: (s.checkpoint_id, s.checkpoint_ns))
    rows, labels = _rows(steps)
    at = {(s.checkpoint_ns, s.checkpoint_id): (x, -rows[(s.checkpoint_ns, s.lane)])
          for x, s in enumerate(steps)}  # fmt: skip
    fig = present.figure(height=150 + 34 * len(labels), legend=True)
    xs: list[float | None] = []
    ys: list[float | None] = []
    for s in steps:
        parent = at.get((s.checkpoint_ns, s.parent_checkpoint_id or ""))
        if parent is None and s.checkpoint_ns:
            parent = at.get(("", (s.metadata.get("parents") or {}).get("", "")))
        if parent is not None:
            here = at[(s.checkpoint_ns, s.checkpoint_id)]
            xs += [parent[0], here[0], None]
            ys += [parent[1], here[1], None]
    fig.add_scatter(x=xs, y=ys, mode="lines", hoverinfo="skip", showlegend=False,
                    line={"color": "#8A92A6", "width": 1.5})  # fmt: skip
    if chosen in {s.checkpoint_id for s in steps}:
        here = next(v for (_, i), v in at.items() if i == chosen)
        fig.add_scatter(x=[here[0]], y=[here[1]], mode="markers", hoverinfo="skip",
                        showlegend=False, marker={"size": 24, "symbol": "circle-open",
                        "color": "#6366F1", "line": {"width": 3}})  # fmt: skip
    for status in ThreadStatus:
        group = [s for s in steps if s.status == status]
        if group:
            places = [at[(s.checkpoint_ns, s.checkpoint_id)] for s in group]
            fig.add_scatter(
                x=[p[0] for p in places], y=[p[1] for p in places], name=str(status),
                mode="markers+text" if len(steps) <= _LABELLED else "markers",
                # Neighbours above and below by turns, so that their names do not meet.
                text=[_named(s, above=bool(p[0] % 2), far=s.checkpoint_id == chosen)
                      for s, p in zip(group, places, strict=True)],
                textposition=["top center" if p[0] % 2 else "bottom center" for p in places],
                textfont={"size": 11},
                customdata=[[s.checkpoint_id, s.checkpoint_ns] for s in group],
                hovertext=[_tip(s, zone) for s in group], hoverinfo="text",
                marker={"size": 12 if len(steps) <= 60 else 8, "symbol": SYMBOLS[status],
                        "color": COLORS[status]},
                selected={"marker": {"opacity": 1}}, unselected={"marker": {"opacity": 1}},
            )  # fmt: skip
    ticks = _ticks(steps, zone)
    fig.update_xaxes(
        tickvals=list(ticks), ticktext=list(ticks.values()), tickangle=0, showgrid=False,
        range=[max(-0.8, len(steps) - _IN_VIEW), len(steps) - 0.2 + len(steps) / 80],
    )  # fmt: skip
    fig.update_yaxes(tickvals=[-i for i in range(len(labels))], ticktext=labels, showgrid=False,
                     range=[-len(labels) + 0.4, 0.9], fixedrange=True, ticksuffix="  ")  # fmt: skip
    fig.update_layout(dragmode="pan")
    return fig


def _ticks(steps: Sequence[Step], zone: tzinfo) -> dict[int, str]:
    """Place → time, at most ten, where a run began; the day where it changed."""
    starts = [(x, s.created_at.astimezone(zone)) for x, s in enumerate(steps)
              if s.source in ("input", "update", "fork") and s.created_at]  # fmt: skip
    out: dict[int, str] = {}
    day = said = ""
    for x, at in starts[:: max(1, -(-len(starts) // 10))]:
        text = f"{at:%H:%M}" if f"{at:%d %b}" == day else f"{at:%H:%M}<br>{at:%d %b}"
        day = f"{at:%d %b}"
        if f"{at:%H:%M}" != said:
            out[x] = text
        said = f"{at:%H:%M}"
    return out


def _rows(steps: Sequence[Step]) -> tuple[dict[tuple[str, int], int], list[str]]:
    """(namespace, lane) → row, and the rows' names: the root graph's first, then as they appear."""
    rows: dict[tuple[str, int], int] = {}
    labels: list[str] = []
    for s in sorted(steps, key=lambda s: (s.checkpoint_ns != "", s.lane if not s.checkpoint_ns
                                          else 0, s.checkpoint_id)):  # fmt: skip
        key = (s.checkpoint_ns, s.lane)
        if key not in rows:
            rows[key] = len(labels)
            name = namespace_label(s.checkpoint_ns) if s.checkpoint_ns else "main line"
            name = f"branch {s.lane}" if s.lane and not s.checkpoint_ns else name
            labels.append(_escaped(shorten(name, 30)))
    return rows, labels


def _label(s: Step) -> str:
    """Nodes that made it; an input says so, and LangGraph's own start node nothing."""
    return ", ".join(n for n in s.nodes if not n.startswith("__")) or (
        s.source if not s.nodes else ""
    )


def _named(s: Step, *, above: bool, far: bool) -> str:
    """The label of a point; farther off where the ring of the chosen one would cross it."""
    text = _escaped(_label(s))
    return text if not far else f"{text}<br>&nbsp;" if above else f"<br>{text}"


def _tip(s: Step, zone: tzinfo) -> str:
    lines = [
        f"step {s.step} · {', '.join(s.nodes) or s.source}",
        present.when(s.created_at, zone),
        f"status: {s.status}",
        f"stored {present.size(s.octets)}, state {present.size(s.state_octets)}",
    ]
    if s.updated:
        lines.append("changed " + shorten(", ".join(s.updated), 60))
    if s.children > 1:
        lines.append(f"{s.children} lines go on from here")
    if s.parent_missing:
        lines.append("its parent is archived or gone")
    return "<br>".join(_escaped(line) for line in lines)


def _escaped(text: str) -> str:
    """Stored text must not format a chart's labels."""
    return text.replace("&", "&amp;").replace("<", "&lt;")


def growth(found: Usage) -> go.Figure:
    """Everything a thread took to store, step by step, beside its state at that step."""
    fig = present.figure(height=260)
    xs = list(range(len(found.growth)))
    steps = [f"step {g.step}" for g in found.growth]
    for name, values, fill in (
        ("stored in all", [g.stored_octets for g in found.growth], "tozeroy"),
        ("state at the step", [g.state_octets for g in found.growth], None),
    ):
        fig.add_scatter(
            x=xs, y=values, name=name, mode="lines", fill=fill, line={"width": 2},
            hovertext=[f"{s}<br>{name}: {present.size(v)}"
                       for s, v in zip(steps, values, strict=True)],
            hoverinfo="text",
        )  # fmt: skip
    fig.update_yaxes(tickformat="~s", ticksuffix="B", rangemode="tozero", nticks=5)
    fig.update_xaxes(showgrid=False, showticklabels=False)
    return fig


def freed(found: Usage) -> go.Figure:
    """What keeping only the newest checkpoints of a thread would free, beside what stays."""
    rows = found.freed[::-1]
    fig = present.figure(height=90 + 34 * len(rows))
    names = [f"newest {f.keep_last}" for f in rows]
    for name, color, values in (
        ("stays", "#5A5DE8", [found.total - f.octets for f in rows]),
        ("freed", "#E0962B", [f.octets for f in rows]),
    ):
        fig.add_bar(
            x=values, y=names, name=name, orientation="h", marker={"color": color},
            text=[present.size(v) if v > found.total / 8 else "" for v in values],
            textposition="inside", insidetextanchor="middle",
            hovertext=[f"keep the {n}<br>{name}: {present.size(v)}<br>"
                       f"{present.count(f.checkpoints, 'checkpoint')} would go"
                       for n, v, f in zip(names, values, rows, strict=True)],
            hoverinfo="text",
        )  # fmt: skip
    fig.update_layout(barmode="stack", legend_traceorder="normal")
    fig.update_xaxes(tickformat="~s", ticksuffix="B", nticks=5)
    fig.update_yaxes(showgrid=False, ticksuffix="  ")
    return fig


def shares(found: Usage, *, by: str = "channels", most: int = 10) -> go.Figure:
    """Bytes by channel or thread: what the newest state refers to, and what is older."""
    rows = (found.channels if by == "channels" else found.by_thread)[:most][::-1]
    fig = present.figure(height=90 + 26 * len(rows))
    names = [_escaped(shorten(r.name, 40)) for r in rows]
    for name, values in (
        ("in newest states", [r.live_octets for r in rows]),
        ("older", [max(0, r.octets - r.live_octets) for r in rows]),
    ):
        fig.add_bar(
            x=values, y=names, name=name, orientation="h",
            hovertext=[f"{n}<br>{name}: {present.size(v)}"
                       for n, v in zip(names, values, strict=True)],
            hoverinfo="text",
        )  # fmt: skip
    fig.update_layout(barmode="stack", legend_traceorder="normal")
    fig.update_xaxes(tickformat="~s", ticksuffix="B", nticks=5)
    fig.update_yaxes(showgrid=False, ticksuffix="  ")
    return fig
