"""The map against umap-learn: seconds, memory, what the browser is sent, and how true it is.

    python -m benchmarks.projection [--sizes 1000 10000 100000] [--dimensions 384] [--no-umap]

Each run is a process of its own, so that compiling and peak memory count. Vectors are made: 40
themes, 2,000 subjects, noise, seeded, as hard as real sentence vectors (about a third of the
neighbourhoods survive in two dimensions). umap-learn runs with its own recommended settings for
this metric, seeded (reproducible, as the map promises) and unseeded (its fastest, in parallel).
CPU seconds are printed beside wall seconds: on a busy machine compare those.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from datetime import UTC, datetime

import numpy as np


def vectors(n: int, dimensions: int) -> np.ndarray:
    """(n, dimensions) float32."""
    random = np.random.default_rng(0)
    themes = random.standard_normal((40, dimensions))
    subjects = themes[random.integers(0, 40, 2000)] + 0.8 * random.standard_normal(
        (2000, dimensions)
    )
    rows = subjects[random.integers(0, 2000, n)]
    return (rows + 1.0 * random.standard_normal((n, dimensions))).astype(np.float32)


def ours(n: int, dimensions: int) -> dict[str, object]:
    from memcore.projection.arrangement import warm
    from memcore.projection.fitting import draw

    made = vectors(n, dimensions)
    began = time.perf_counter()
    warm()
    warmed = time.perf_counter() - began
    first: list[float] = []
    began, cpu = time.perf_counter(), time.process_time()
    picture = draw(
        [f"{i:08d}" for i in range(n)], made,
        early=lambda ids, coordinates: first.append(time.perf_counter() - began),
    )  # fmt: skip
    wall, used = time.perf_counter() - began, time.process_time() - cpu
    figures = picture.faithfulness
    assert figures is not None
    return {
        "warm start s": warmed, "first picture s": first[0], "wall s": wall, "cpu s": used,
        "peak MB": peak(), "preserved": figures.preservation,
        "trustworthiness": figures.trustworthiness, "neighbours found": picture.neighbour_recall,
        "fitted": int((~picture.placed).sum()), "pairs": picture.pairs.total,
    }  # fmt: skip


def theirs(n: int, dimensions: int, *, seeded: bool) -> dict[str, object]:
    import warnings

    warnings.simplefilter("ignore")
    import umap

    from memcore.projection.faithfulness import measured
    from memcore.projection.neighbours import nearest

    made = vectors(n, dimensions)
    began = time.perf_counter()
    seed = {"random_state": 42} if seeded else {}
    umap.UMAP(metric="cosine", **seed).fit(vectors(5000, dimensions))
    warmed = time.perf_counter() - began
    began, cpu = time.perf_counter(), time.process_time()
    coordinates = umap.UMAP(metric="cosine", **seed).fit_transform(made)
    wall, used = time.perf_counter() - began, time.process_time() - cpu
    top = peak()
    unit = made / np.linalg.norm(made, axis=1, keepdims=True)
    figures, _ = measured(unit, coordinates, nearest(unit, 15, pair_floor=2, pair_limit=0).index)
    assert figures is not None
    return {
        "warm start s": warmed, "first picture s": wall, "wall s": wall, "cpu s": used,
        "peak MB": top, "preserved": figures.preservation,
        "trustworthiness": figures.trustworthiness, "fitted": n,
    }  # fmt: skip


def payload(n: int) -> dict[str, object]:
    """Bytes of the figure as the browser gets it, and seconds to build it."""
    import plotly.io

    from memcore.models import MemoryType, Scope, Status
    from memcore.services.projection import Known, MapView
    from pages.shared import maps

    random = np.random.default_rng(0)
    now = datetime.now(UTC)
    text = "The team decided to keep a reserved book for three days, and Sundays do not count. "
    view = MapView(
        picture=Known("p", "l", "hash:64", {}, "done", "current", "umap", now), explanation="",
        ids=[f"{i:036d}" for i in range(n)], x=random.standard_normal(n).astype(np.float32),
        y=random.standard_normal(n).astype(np.float32), spot=np.arange(n, dtype=np.int32),
        copies=np.ones(n, np.int32), cluster=np.zeros(n, np.int32),
        isolation=np.zeros(n, np.float32), preservation=np.zeros(n, np.float32),
        placed=np.zeros(n, bool), titles=[""] * n, texts=[text * 2] * n,
        types=[list(MemoryType)[i % 10] for i in range(n)], statuses=[Status.ACTIVE] * n,
        scopes=[Scope.USER] * n, scope_ids=["u"] * n, users=["u"] * n, created=[now] * n,
        confidence=np.ones(n, np.float32), uses=np.zeros(n, np.int32), clusters=(),
        isolation_limit=None, faithfulness=None, pair_floor=0.9, left_out=(), stale=0, late=0,
    )  # fmt: skip
    began = time.perf_counter()
    traces = maps.points(view, "type", np.arange(n), zone=UTC, now=now)
    sent = len(plotly.io.to_json(maps.figure(traces, height=660, dark=False), validate=False))
    return {"payload MB": sent / 1e6, "build s": time.perf_counter() - began}


def peak() -> float:
    """Peak resident memory of this process, MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 10_000, 100_000])
    parser.add_argument("--dimensions", type=int, default=384)
    parser.add_argument("--no-umap", action="store_true", help="leave umap-learn out")
    parser.add_argument("--one", nargs=2, metavar=("WHAT", "N"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.one:
        what, n = chosen.one[0], int(chosen.one[1])
        run = {
            "map": lambda: ours(n, chosen.dimensions),
            "umap-learn seeded": lambda: theirs(n, chosen.dimensions, seeded=True),
            "umap-learn fastest": lambda: theirs(n, chosen.dimensions, seeded=False),
            "payload": lambda: payload(n),
        }[what]
        print(json.dumps(run()))
        return
    for n in chosen.sizes:
        kinds = ["map", "payload"]
        if not chosen.no_umap:
            kinds += ["umap-learn fastest"]
            # Seeded, umap-learn runs on one core; at 100,000 that is an hour's benchmark.
            kinds += ["umap-learn seeded"] if n <= 20_000 else []
        for what in kinds:
            done = subprocess.run(
                [sys.executable, "-m", "benchmarks.projection", "--one", what, str(n),
                 "--dimensions", str(chosen.dimensions)],
                capture_output=True, text=True, check=True,
            )  # fmt: skip
            found = json.loads(done.stdout.splitlines()[-1])
            said = "  ".join(
                f"{k} {v:,.3f}" if isinstance(v, float) and v < 10 else f"{k} {v:,.0f}"
                for k, v in found.items() if v is not None
            )  # fmt: skip
            print(f"{n:>8,}  {what:<20} {said}", flush=True)


if __name__ == "__main__":
    main()
