"""The map at the command line: a library's, or of vectors in a file."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from memcore.cli.output import command, document, opened, table
from memcore.errors import InvalidInput, NotFound
from memcore.models import Actor
from memcore.projection import MapSettings, Picture


def register(commands: Any) -> None:
    parser = command(
        commands, "map", _map, "Draw a library by meaning: groups, near-duplicates, outliers."
    )
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--library", help="library, by name or id")
    source.add_argument(
        "--file", help='JSON Lines of {"id", "vector"} to draw instead; nothing is stored'
    )
    parser.add_argument("--user", help="only what this user may see; default everything")
    parser.add_argument("--redraw", action="store_true", help="draw again, even if it is current")
    parser.add_argument("--query", metavar="TEXT", help="where this text lands")
    parser.add_argument("--dimensions", type=int, help="which vectors of a file, if lengths differ")
    for name, kind in (("neighbours", int), ("min-dist", float), ("seed", int),
                       ("sample-above", int)):  # fmt: skip
        parser.add_argument(f"--{name}", type=kind, help=argparse.SUPPRESS)


def _map(arguments: argparse.Namespace) -> int:
    names = ("neighbours", "min_dist", "seed", "sample_above")
    given = {n: getattr(arguments, n) for n in names if getattr(arguments, n) is not None}
    settings = MapSettings(**given)
    if arguments.file:
        return _file(arguments, settings)
    with opened() as core:
        library = core.libraries.get(arguments.library)
        actor = (
            core.people.actor(arguments.user)
            if arguments.user
            else Actor("operator", operator=True)
        )
        known = [p for p in core.projection.pictures(library.id) if p.origin == "current"]
        if arguments.redraw or given or not known:
            job = core.projection.wait(core.projection.draw(library.id, settings))
            if job.state != "done":
                raise InvalidInput(f"The map was not drawn: {job.note}")
            print(job.note, file=sys.stderr)
            known = [p for p in core.projection.pictures(library.id) if p.origin == "current"]
            known.sort(key=lambda p: p.created_at, reverse=True)
        if not known:
            raise NotFound("There is no picture of the library.")
        picture_id = known[0].id
        core.projection.catch_up(picture_id, library.id)
        view = core.projection.view(library.id, actor=actor, picture_id=picture_id)
        pairs = core.projection.pairs(picture_id, actor=actor)
        landing = (
            core.projection.locate(library.id, arguments.query, actor=actor, picture_id=picture_id)
            if arguments.query
            else None
        )
    if arguments.json:
        document({
            "method": view.picture.method, "explanation": view.explanation,
            "faithfulness": asdict(view.faithfulness) if view.faithfulness else None,
            "points": [
                {"id": i, "x": x, "y": y, "copies": c, "cluster": g, "isolation": _number(a)}
                for i, x, y, c, g, a in zip(
                    view.ids, view.x.tolist(), view.y.tolist(), view.copies.tolist(),
                    view.cluster.tolist(), view.isolation.tolist(), strict=True,
                )
            ],
            "clusters": [asdict(c) for c in view.clusters],
            "outliers": [view.ids[p] for p in view.outliers],
            "pairs": [{"first": a, "second": b, "similarity": s} for a, b, s in pairs],
            "left_out": [asdict(row) for row in view.left_out],
            "landing": asdict(landing) if landing else None, "stale": view.stale,
        })  # fmt: skip
        return 0
    print(view.explanation)
    _trust(view.faithfulness)
    table(("group", "memories"), ((c.name, c.size) for c in view.clusters))
    text = dict(zip(view.ids, view.texts, strict=True))
    if pairs:
        rows = [(f"{s:.3f}", text.get(a, a), text.get(b, b)) for a, b, s in pairs[:20]]
        table(("similarity", "near-duplicates", ""), rows)
    if len(view.outliers):
        alone = [(f"{view.isolation[p]:.3f}", view.texts[p]) for p in view.outliers[:20]]
        table(("isolation", "outliers"), alone)
    if landing:
        table(("similarity", "near the query"),
              ((f"{s:.3f}", text.get(i, i)) for i, s in landing.nearest[:8]))  # fmt: skip
    if view.left_out:
        table(("not drawn", "why"), ((row.text, row.reason) for row in view.left_out))
    return 0


def _file(arguments: argparse.Namespace, settings: MapSettings) -> int:
    from memcore.projection.fitting import draw

    ids, vectors = _read(arguments.file)
    picture = draw(ids, vectors, settings, dimensions=arguments.dimensions)
    if arguments.json:
        document(_drawn(picture))
        return 0
    print(picture.explanation)
    _trust(picture.faithfulness)
    table(("id", "x", "y", "group"), (
        (i, f"{x:.3f}", f"{y:.3f}", g if g >= 0 else "")
        for i, (x, y), g in zip(
            picture.ids, picture.coordinates.tolist(), picture.cluster.tolist(), strict=True
        )
    ))  # fmt: skip
    if picture.left_out:
        table(("not drawn", "why"), ((row.id, row.detail) for row in picture.left_out))
    return 0


def _read(path: str) -> tuple[list[str], list[Any]]:
    """Ids and vectors of a file; a line without an id is named by its number."""
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read: {error}") from None
    ids, vectors = [], []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            vector = row if isinstance(row, list) else row.get("vector")
            if vector is not None:
                np.asarray(vector, dtype=np.float32)
        except (ValueError, TypeError, AttributeError):
            raise InvalidInput(
                f"Line {number} of {path} is not a vector.",
                hint='Write one {"id": "…", "vector": [0.1, …]} a line.',
            ) from None
        ids.append(str(number if isinstance(row, list) else row.get("id", number)))
        vectors.append(vector)
    return ids, vectors


def _drawn(picture: Picture) -> dict[str, Any]:
    copies = np.bincount(picture.spot) if len(picture.spot) else picture.spot
    return {
        "method": picture.method, "explanation": picture.explanation,
        "faithfulness": asdict(picture.faithfulness) if picture.faithfulness else None,
        "points": [
            {"id": i, "x": x, "y": y, "copies": int(copies[s]), "cluster": g, "placed": p}
            for i, (x, y), s, g, p in zip(
                picture.ids, picture.coordinates.tolist(), picture.spot.tolist(),
                picture.cluster.tolist(), picture.placed.tolist(), strict=True,
            )
        ],
        "pairs": [
            {"first": picture.ids[a], "second": picture.ids[b], "similarity": s}
            for a, b, s in zip(
                picture.pairs.first.tolist(), picture.pairs.second.tolist(),
                picture.pairs.similarity.tolist(), strict=True,
            )
        ],
        "left_out": [asdict(row) for row in picture.left_out],
        "dimensions": picture.dimensions,
        "groups": [{"dimensions": d, "rows": n} for d, n in picture.groups],
        "seconds": dict(picture.seconds),
    }  # fmt: skip


def _trust(figures: Any) -> None:
    if figures is not None:
        print(f"Trust: {figures.grade}. {figures.preservation:.0%} of each memory's {figures.k} "
              f"nearest are kept (chance {figures.chance:.1%}).")  # fmt: skip


def _number(value: float) -> float | None:
    """None for what JSON has no number for."""
    return value if np.isfinite(value) else None
