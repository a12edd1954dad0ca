"""Drawing a picture: vectors out of the store, PCA within seconds, UMAP when it is ready.

Runs as a background job. The PCA picture is readable while UMAP still works; what is done replaces
the picture of the same vectors and settings, and the pictures of other embedders, settings and
earlier vectors stay for comparison.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from sqlalchemy import Connection

from memcore.database import pictures
from memcore.database.jobs import Job, Report
from memcore.embeddings import Vectors, calibrated_for
from memcore.errors import InvalidInput
from memcore.models import Library
from memcore.projection import Floats, MapSettings, Picture
from memcore.projection.arrangement import warm
from memcore.projection.fitting import draw
from memcore.services.libraries import LibraryService
from memcore.services.runtime import Runtime

KIND = "map"
_BATCH = 2000
_TRIAL_BATCH = 64
_PAIRS = 20_000


class Drawing:
    """Part of ProjectionService: making pictures."""

    _runtime: Runtime
    _libraries: LibraryService

    def draw(
        self,
        library_id: str,
        settings: MapSettings | None = None,
        *,
        embedder: str | None = None,
    ) -> Job:
        """Start drawing the library, or return the job that already does. `embedder` names another
        embedder to try: every text is embedded with it, the library and its vectors stay as they
        are. Progress is in the job. Raises NotFound."""
        library = self._libraries.get(library_id)
        chosen = settings or MapSettings()
        trial = embedder if embedder and embedder != library.embedder else None

        def work(report: Report) -> str:
            return self._drawn(library, chosen, trial, report)

        return self._runtime.jobs.start(
            KIND, library.id, work, {**asdict(chosen), "embedder": trial}
        )

    def job(self, library_id: str) -> Job | None:
        """The newest drawing of the library; None where nothing was ever drawn."""
        return self._runtime.jobs.latest(KIND, library_id)

    def wait(self, job: Job, timeout: float = 600) -> Job:
        """The job once it has ended, for scripts; a page polls `job` instead."""
        return self._runtime.jobs.wait(job.id, timeout)

    def cancel(self, job: Job) -> None:
        """Stop drawing at the next step; the previous picture stays."""
        self._runtime.jobs.cancel(job.id)

    # ---- parts

    def _drawn(
        self, library: Library, settings: MapSettings, trial: str | None, report: Report
    ) -> str:
        """The whole job; returns what is said when it is done."""
        # numba compiles while vectors are being read and compared.
        warming = threading.Thread(target=warm, name="memcore umap warm start", daemon=True)
        warming.start()
        engine = self._runtime.engine
        with engine.connect() as connection:
            rows = pictures.to_draw(connection, library.id)
        hashes = dict(rows)
        ids = [row[0] for row in rows]
        report("Reading vectors", 0, len(ids))
        vectors = (
            self._stored(library, ids, report)
            if trial is None
            else self._embedded(replace(library, embedder=trial), ids, report)
        )
        begun: list[str] = []

        def begin(connection: Connection) -> str:
            if not begun:
                begun.append(pictures.begin(
                    connection, library_id=library.id,
                    collection_id=library.collection_id if trial is None else None,
                    embedder=trial or library.embedder, settings=asdict(settings),
                ))  # fmt: skip
            return begun[0]

        def early(drawn: tuple[str, ...], coordinates: Floats) -> None:
            # The picture and its first points in one transaction: nobody meets it empty.
            with engine.begin() as connection:
                pictures.put_points(
                    connection, begin(connection), _first(drawn, coordinates, hashes)
                )

        try:
            picture = draw(
                ids, vectors, settings, pair_floor=_pair_floor(self._runtime, library, trial),
                pair_limit=_PAIRS, early=early, progress=report,
            )  # fmt: skip
            report("Storing the picture", 0, 0)
            with engine.begin() as connection:
                projection_id = begin(connection)
                pictures.put_points(connection, projection_id, _points(picture, hashes))
                pictures.put_pairs(connection, projection_id, _pairs(picture))
                pictures.finish(
                    connection, projection_id, method=picture.method,
                    explanation=picture.explanation, width=_width(picture.coordinates),
                    figures=_figures(picture),
                )  # fmt: skip
        except BaseException:
            with engine.begin() as connection:
                pictures.discard(connection, begun)
            raise
        return f"Drawn with {picture.method.replace('_', ' ')} in {_total(picture):.1f} s"

    def _stored(self, library: Library, ids: list[str], report: Report) -> Any:
        """Vectors of `ids` from the library's store: one matrix where all are there and of one
        length, else a list with None for what is missing."""
        store = self._runtime.store_for(library)
        matrix = np.empty((len(ids), library.dimensions), dtype=np.float32)
        odd: dict[int, Vectors | None] = {}
        for start in range(0, len(ids), _BATCH):
            batch = ids[start : start + _BATCH]
            found = store.fetch(batch)
            for i, memory_id in enumerate(batch, start):
                vector = found.get(memory_id)
                if vector is not None and len(vector) == library.dimensions:
                    matrix[i] = vector
                else:
                    odd[i] = vector
            report("Reading vectors", start + len(batch), len(ids))
        if not odd:
            return matrix
        return [odd[i] if i in odd else matrix[i] for i in range(len(ids))]

    def _embedded(self, library: Library, ids: list[str], report: Report) -> Any:
        """Vectors of the memories' texts by an embedder on trial; nothing is stored."""
        embedder = self._runtime.embedder_for(library)
        out: list[Vectors] = []
        for start in range(0, len(ids), _TRIAL_BATCH):
            batch = ids[start : start + _TRIAL_BATCH]
            with self._runtime.engine.connect() as connection:
                texts = pictures.contents(connection, batch)
            out.append(embedder.embed_documents([texts.get(i) or " " for i in batch]))
            report(f"Embedding with {library.embedder}", start + len(batch), len(ids))
        if not out:
            raise InvalidInput("The library has no memory to embed.")
        return np.vstack(out)


def _pair_floor(runtime: Runtime, library: Library, trial: str | None) -> float:
    """Cosine from which pairs are kept: twice as far apart as duplicates are, by the embedder's
    calibration or by the library's own threshold where that is lower."""
    known = calibrated_for(trial or library.embedder).get("duplicate_threshold")
    own = runtime.settings_of(library).settings.gate.duplicate_threshold
    threshold = min(float(known), own) if known is not None and trial is None else known or own
    return max(0.0, 1 - 2 * (1 - float(threshold)))


def _first(
    ids: tuple[str, ...], coordinates: Floats, hashes: dict[str, str]
) -> Iterator[tuple[Any, ...]]:
    """Points of the PCA picture: places, and nothing else yet."""
    nan = float("nan")
    for i, (memory_id, (x, y)) in enumerate(zip(ids, coordinates.tolist(), strict=True)):
        yield memory_id, hashes[memory_id], i, x, y, i, -1, nan, nan, [], False, ""


def _points(picture: Picture, hashes: dict[str, str]) -> Iterator[tuple[Any, ...]]:
    columns = zip(
        picture.ids, picture.coordinates.tolist(), picture.spot.tolist(), picture.cluster.tolist(),
        picture.isolation.tolist(), picture.preservation.tolist(), picture.neighbours.tolist(),
        picture.placed.tolist(), strict=True,
    )  # fmt: skip
    for i, (memory_id, (x, y), spot, cluster, alone, kept, near, placed) in enumerate(columns):
        yield (
            memory_id, hashes[memory_id], i, x, y, spot, cluster, alone, kept,
            [o for o in near if o >= 0], placed, "",
        )  # fmt: skip
    nan = float("nan")
    for i, row in enumerate(picture.left_out, len(picture.ids)):
        yield row.id, hashes[row.id], i, 0.0, 0.0, i, -1, nan, nan, [], False, row.reason


def _pairs(picture: Picture) -> Iterator[tuple[str, str, float]]:
    p = picture.pairs
    for a, b, s in zip(p.first.tolist(), p.second.tolist(), p.similarity.tolist(), strict=True):
        yield picture.ids[a], picture.ids[b], s


def _figures(picture: Picture) -> dict[str, Any]:
    limit = picture.isolation_limit
    return {
        "faithfulness": asdict(picture.faithfulness) if picture.faithfulness else None,
        "pair_floor": picture.pairs.floor,
        "isolation_limit": limit if np.isfinite(limit) else None,
        "neighbour_recall": picture.neighbour_recall,
        "dimensions": picture.dimensions,
        "seconds": [list(lap) for lap in picture.seconds],
    }


def _width(coordinates: Floats) -> float:
    return float(np.ptp(coordinates, axis=0).max()) if len(coordinates) else 0.0


def _total(picture: Picture) -> float:
    return sum(seconds for _, seconds in picture.seconds)
