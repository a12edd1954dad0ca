"""Map views → Plotly figures. Draws nothing, does no I/O.

Text from memories never reaches Plotly as markup: its hover labels read a subset of HTML, so it is
escaped, wrapped and cut here. Points carry their position in the view as custom data; the page
turns it into an id at once.
"""

from __future__ import annotations

import html
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any

import numpy as np
import plotly.graph_objects as go

from memcore.models import SearchResult, Status
from memcore.services.projection import Landing, MapView
from pages.shared import messages, present

COLOURS = ("type", "status", "scope", "user", "group", "age", "confidence", "use", "faithfulness")
LABELS = {"use": "Times recalled", "age": "Age in days", "faithfulness": "Neighbourhood kept"}


def label(colour: str) -> str:
    return LABELS.get(colour, colour.capitalize())


FULL_HOVER = 6_000
"""Points up to which each carries its text; above, its first words."""
ANY_HOVER = 20_000
"""Points up to which each says anything at all; above, select some to read them."""
SVG = 1_500
"""Points up to which they are drawn as shapes, sharper; above, with WebGL."""
RINGED = 3_000
"""Selected points up to which each gets a ring."""

# Middle tones, apart from each other for the colour-blind, legible on white and on near-black.
PALETTE = ("#5B7BE8", "#E0862B", "#23A38C", "#C75BB0", "#8F9A2C", "#D6524F", "#3FA4D8", "#9A7B5B",
           "#8B6BE0", "#6E7F96")  # fmt: skip
OTHER = "#8A92A6"
ACCENT = "#E0457B"
MISSED = "#D9822B"
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross")
SCALE = [[0, "#3B5BDB"], [0.5, "#2DB39A"], [1, "#F2B134"]]

_LINE = 46
_HOVER_TEXT = 180


def config() -> dict[str, Any]:
    return {
        "scrollZoom": True, "displaylogo": False, "displayModeBar": True,
        "modeBarButtonsToRemove": ["autoScale2d", "toImage", "zoomIn2d", "zoomOut2d"],
    }  # fmt: skip


@dataclass(frozen=True)
class Overlay:
    """What a query adds to the picture."""

    landing: Landing | None
    result: SearchResult
    near_misses: int = 8


def wrapped(text: str, *, limit: int = _HOVER_TEXT, width: int = _LINE) -> str:
    """`text` for a Plotly label: literal, on lines of `width` columns (a Chinese character takes
    two), cut with an ellipsis after `limit` characters."""
    text = " ".join(text.split())
    if len(text) > limit:
        text = text[: limit - 1].rstrip() + "…"
    lines, line, used = [], "", 0
    for word in _pieces(text):
        size = _columns(word)
        if used + size > width and line:
            lines.append(line.rstrip())
            line, used = "", 0
            word = word.lstrip()
            size = _columns(word)
        line += word
        used += size
    lines.append(line)
    return "<br>".join(html.escape(part, quote=False) for part in lines)


def _pieces(text: str) -> Iterable[str]:
    """Words with their space, wide characters one by one, and over-long words in parts."""
    word = ""
    for char in text:
        if unicodedata.east_asian_width(char) in "WF":
            if word:
                yield word
            word = ""
            yield char
            continue
        word += char
        if char == " " or len(word) >= _LINE:
            yield word
            word = ""
    if word:
        yield word


def _columns(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


# ---- points -------------------------------------------------------------------------------------


def points(
    view: MapView, colour: str, shown: np.ndarray, *, zone: tzinfo, now: datetime,
    agreement: np.ndarray | None = None, places: np.ndarray | None = None,
) -> list[Any]:  # fmt: skip
    """Traces of the points `shown` (positions), by `colour`. `agreement` (n,): coloured by it
    instead; `places` (n, 2): drawn there instead."""
    xy = places if places is not None else np.column_stack([view.x, view.y])
    draw = go.Scatter if len(shown) <= SVG else go.Scattergl
    size = 9 if len(shown) <= 600 else 7 if len(shown) <= 3000 else 5 if len(shown) <= 20_000 else 3
    hover = _hover(view, shown, zone)
    lookup = {int(p): i for i, p in enumerate(shown)} if hover else {}

    def trace(at: np.ndarray, name: str, **marker: Any) -> Any:
        texts = [hover[lookup[int(p)]] for p in at] if hover else None
        return draw(
            x=xy[at, 0], y=xy[at, 1], mode="markers", name=name, customdata=at.astype(np.int32),
            text=texts, hovertemplate="%{text}<extra></extra>" if texts else None,
            hoverinfo=None if texts else "skip",
            marker={"size": size, "opacity": 0.82 if len(shown) <= 3000 else 0.6,
                    "line": {"width": 0}, **marker},
            unselected={"marker": {"opacity": 0.82 if len(shown) <= 3000 else 0.6}},
        )  # fmt: skip

    values, title = _numbers(view, colour, now) if agreement is None else (agreement, "Agreement")
    if values is not None:
        known = shown[~np.isnan(values[shown])]
        unknown = shown[np.isnan(values[shown])]
        traces = [trace(unknown, "unknown", color=OTHER)] if len(unknown) else []
        bar = {"title": {"text": title, "side": "right"}, "thickness": 12, "len": 0.6,
               "outlinewidth": 0}  # fmt: skip
        low, high = _range(values[known]) if len(known) else (0, 1)
        if colour in ("confidence", "faithfulness") or agreement is not None:
            low, high = 0.0, 1.0
        traces.append(trace(known, f"{title} · {len(known):,}", color=values[known],
                            colorscale=SCALE, cmin=low, cmax=high, colorbar=bar))  # fmt: skip
        return traces
    labels = _labels(view, colour)
    counted = Counter(labels[p] for p in shown)
    groups: dict[str, list[int]] = {}
    for p in shown:
        groups.setdefault(labels[p], []).append(int(p))
    traces = []
    for i, name in enumerate(_order(colour, counted)):
        at = np.array(groups[name], dtype=np.int32)
        said = html.escape(messages.words(name), quote=False)
        symbol = SYMBOLS[i % 5] if colour in ("status", "scope") else "circle"
        traces.append(trace(at, f"{said} · {len(at):,}", color=_colour(colour, name, i),
                            symbol=symbol))  # fmt: skip
    return traces


def _numbers(view: MapView, colour: str, now: datetime) -> tuple[np.ndarray | None, str]:
    """Values of a continuous colour and what they are called; None for a word colour."""
    title = label(colour)
    if colour == "confidence":
        return view.confidence.astype(float), title
    if colour == "use":
        return view.uses.astype(float), title
    if colour == "faithfulness":
        return view.preservation.astype(float), title
    if colour == "age":
        return np.array([(now - c).total_seconds() / 86400 for c in view.created]), title
    return None, title


def _labels(view: MapView, colour: str) -> list[str]:
    if colour == "type":
        return [str(t) for t in view.types]
    if colour == "status":
        return [str(s) for s in view.statuses]
    if colour == "scope":
        return [str(s) for s in view.scopes]
    if colour == "group":
        names = {c.number: c.name for c in view.clusters[: len(PALETTE)]}
        return ["no group" if c < 0 else names.get(int(c), "other groups") for c in view.cluster]
    most = [u for u, _ in Counter(view.users).most_common(len(PALETTE) - 1)]
    return [u if u in most else "other users" for u in view.users]


def _order(colour: str, counted: Counter[str]) -> list[str]:
    if colour == "status":
        return [str(s) for s in Status if counted[str(s)]]
    last = ("no group", "other groups", "other users")
    return sorted(counted, key=lambda n: (n in last, -counted[n], n))


def _colour(colour: str, name: str, i: int) -> str:
    if colour == "status":
        return present.STATUS_COLORS[Status(name)]
    if name in ("no group", "other groups", "other users"):
        return OTHER
    return PALETTE[i % len(PALETTE)]


def _range(values: np.ndarray) -> tuple[float, float]:
    """From least to most, without the most extreme hundredth, so that one value does not flatten
    the scale."""
    low, high = float(values.min()), float(np.percentile(values, 99))
    return (low, high) if high > low else (low, low + 1)


def _hover(view: MapView, shown: np.ndarray, zone: tzinfo) -> list[str]:
    """One label per shown point, or none at all."""
    if len(shown) > ANY_HOVER:
        return []
    if len(shown) > FULL_HOVER:
        return [wrapped(view.titles[p] or view.texts[p], limit=48) for p in shown]
    out = []
    for p in shown:
        title = f"<b>{wrapped(view.titles[p], limit=80)}</b><br>" if view.titles[p] else ""
        facts = [
            f"{messages.words(view.types[p])} · {view.statuses[p]} · {view.scopes[p]}",
            f"{html.escape(view.users[p][:40], quote=False)} · "
            f"{view.created[p].astimezone(zone):%Y-%m-%d}",
            f"confidence {view.confidence[p]:.2f} · recalled {view.uses[p]}×",
        ]
        if view.copies[p] > 1:
            facts.append(f"{view.copies[p]} memories with this vector")
        if view.placed[p] and np.isnan(view.preservation[p]):
            facts.append("placed after the map was drawn")
        out.append(f"{title}{wrapped(view.texts[p])}<br><br>" + "<br>".join(facts))
    return out


# ---- what lies over the points -------------------------------------------------------------------


def figure(traces: list[Any], *, height: int, dark: bool) -> go.Figure:
    """The map: equal axes without numbers, because only nearness means something."""
    fig = present.figure(height=height, legend=True)
    fig.add_traces(traces)
    fig.update_layout(
        # Streamlit takes clicks only while dragging moves the map, not while it draws a lasso.
        dragmode="pan", uirevision="map", hovermode="closest", hoverdistance=12,
        margin={"l": 4, "r": 4, "t": 4, "b": 4},
        legend={"itemsizing": "constant", "font": {"size": 12}, "y": -0.01, "yanchor": "top"},
        modebar={"orientation": "v", "bgcolor": "rgba(0,0,0,0)", "activecolor": ACCENT,
                 "color": "#8A92A6"},
        hoverlabel={"font": {"size": 12.5}, "bgcolor": "#232739" if dark else "#FFFFFF",
                    "bordercolor": "#4A5070" if dark else "#C9CEDD"},
    )  # fmt: skip
    quiet = {"showgrid": False, "zeroline": False, "showticklabels": False, "ticks": "",
             "showline": False}  # fmt: skip
    fig.update_xaxes(**quiet)
    fig.update_yaxes(**quiet, scaleanchor="x", scaleratio=1)
    return fig


def names(view: MapView, *, most: int, dark: bool, places: np.ndarray | None = None) -> Any:
    """The largest groups' names above their members."""
    xy = places if places is not None else np.column_stack([view.x, view.y])
    shown, at = [], []
    for cluster in view.clusters[:most]:
        members = xy[view.cluster == cluster.number]
        members = members[~np.isnan(members[:, 0])]
        if len(members):
            shown.append(" · ".join(cluster.name.split(" · ")[:2]))
            at.append((np.median(members[:, 0]), np.percentile(members[:, 1], 92)))
    return go.Scatter(
        x=[x for x, _ in at], y=[y for _, y in at], mode="text", showlegend=False,
        hoverinfo="skip", textposition="top center", cliponaxis=False,
        text=[f"<b>{html.escape(name, quote=False)}</b>" for name in shown],
        textfont={"size": 12, "color": "#E9EBF5" if dark else "#171A2B",
                  "shadow": _halo("#12141F" if dark else "#FFFFFF")},
    )  # fmt: skip


def _halo(colour: str) -> str:
    return ", ".join(f"{x}px {y}px 2px {colour}" for x, y in
                     ((1, 1), (-1, 1), (1, -1), (-1, -1), (0, 1), (0, -1)))  # fmt: skip


def rings(xy: np.ndarray, at: Sequence[int], *, dark: bool) -> Any:
    """Rings around selected points, finer where there are many."""
    size, width = (16, 2.0) if len(at) <= 12 else (12, 1.2) if len(at) <= 150 else (9, 0.9)
    draw = go.Scatter if len(xy) <= SVG else go.Scattergl
    chosen = np.array(list(at), dtype=np.int32)
    return draw(
        x=xy[chosen, 0], y=xy[chosen, 1], mode="markers", hoverinfo="skip", showlegend=True,
        name=f"selected · {len(chosen):,}",
        marker={"size": size, "symbol": "circle-open", "color": "#FFFFFF" if dark else "#171A2B",
                "line": {"width": width}},
    )  # fmt: skip


def lines(
    xy: np.ndarray, ends: Sequence[tuple[int, int]], *, colour: str, name: str, dash: str = "solid",
    width: float = 1.4, opacity: float = 0.7,
) -> Any:  # fmt: skip
    """Straight lines between points, one trace."""
    x: list[float | None] = []
    y: list[float | None] = []
    for a, b in ends:
        x += [float(xy[a, 0]), float(xy[b, 0]), None]
        y += [float(xy[a, 1]), float(xy[b, 1]), None]
    return go.Scatter(
        x=x, y=y, mode="lines", name=name, hoverinfo="skip", opacity=opacity,
        line={"color": colour, "width": width, "dash": dash},
    )  # fmt: skip


def query(view: MapView, overlay: Overlay, *, dark: bool) -> list[Any]:
    """Where a query lands, lines to its hits (sized by score, numbered by rank), and its nearest
    misses (hollow)."""
    where = {memory_id: i for i, memory_id in enumerate(view.ids)}
    xy = np.column_stack([view.x, view.y])
    hits = [(h, where[h.memory.id]) for h in overlay.result.hits if h.memory.id in where]
    missed = [
        (d, where[d.memory.id])
        for d in overlay.result.dropped[: overlay.near_misses]
        if d.memory.id in where
    ]
    traces: list[Any] = []
    if overlay.landing is not None:
        start = np.array([[overlay.landing.x, overlay.landing.y]])
        both = np.vstack([xy, start])
        if missed:
            traces.append(lines(both, [(len(xy), p) for _, p in missed], colour=MISSED,
                                name="", dash="dot", width=1, opacity=0.55))  # fmt: skip
            traces[-1].showlegend = False
        if hits:
            traces.append(lines(both, [(len(xy), p) for _, p in hits], colour=ACCENT, name="",
                                width=1.6, opacity=0.65))  # fmt: skip
            traces[-1].showlegend = False
    if missed:
        traces.append(go.Scatter(
            x=xy[[p for _, p in missed], 0], y=xy[[p for _, p in missed], 1], mode="markers",
            name=f"just missed · {len(missed)}", customdata=[p for _, p in missed],
            marker={"symbol": "diamond-open", "size": 13, "color": MISSED, "line": {"width": 2}},
            text=[_missed(d) for d, _ in missed], hovertemplate="%{text}<extra></extra>",
        ))  # fmt: skip
    if hits:
        best, least = max(h.score for h, _ in hits), min(h.score for h, _ in hits)
        apart = best - least or 1.0
        traces.append(go.Scatter(
            x=xy[[p for _, p in hits], 0], y=xy[[p for _, p in hits], 1], mode="markers+text",
            name=f"recalled · {len(hits)}", customdata=[p for _, p in hits],
            text=[str(i) for i in range(1, len(hits) + 1)],
            textfont={"size": 11, "color": "#FFFFFF"},
            marker={"size": [16 + 14 * (h.score - least) / apart for h, _ in hits], "color": ACCENT,
                    "opacity": 0.92, "line": {"width": 1.5, "color": "#FFFFFF"}},
            hovertext=[
                f"<b>#{i} · score {h.score:.3f}</b><br>{wrapped(h.memory.content)}"
                for i, (h, _) in enumerate(hits, 1)
            ],
            hovertemplate="%{hovertext}<extra></extra>",
        ))  # fmt: skip
    if overlay.landing is not None:
        traces.append(go.Scatter(
            x=[overlay.landing.x], y=[overlay.landing.y], mode="markers", name="the query",
            marker={"symbol": "star", "size": 20, "color": "#F2B134",
                    "line": {"width": 1.5, "color": "#171A2B" if not dark else "#FFFFFF"}},
            hovertemplate="Where the query lands<extra></extra>",
        ))  # fmt: skip
    return traces


def _missed(dropped: Any) -> str:
    score = "" if dropped.score is None else f" · score {dropped.score:.3f}"
    return (
        f"<b>{messages.words(dropped.reason)}{score}</b><br>{wrapped(dropped.detail, limit=120)}"
        f"<br><br>{wrapped(dropped.memory.content)}"
    )
