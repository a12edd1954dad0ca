"""SQL of the map: pictures written with COPY, read through the one visibility predicate.

Points are joined with their memories on every read, so what an actor may not see is not drawn, not
counted and not named, and what was deleted is gone. Hot reads skip the ORM: a hundred thousand
points are a hundred thousand tuples.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, delete, false, func, or_, select, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import aliased

from memcore.database import queries
from memcore.database.tables import (
    CollectionRow,
    LibraryRow,
    MemoryRow,
    ProjectionPairRow,
    ProjectionPointRow,
    ProjectionRow,
)
from memcore.models import Actor

KEPT = 6
"""Pictures of a library; older ones go when a new one is done."""
TEXT_SHOWN = 200
"""Characters of a memory's content that the map carries; the rest is read when it is selected."""

_POINT_COLUMNS = (
    "memory_id", "content_hash", "ordinal", "x", "y", "spot", "cluster", "isolation",
    "preservation", "neighbours", "placed", "left_out",
)  # fmt: skip
# Ids travel as text and are cast once: a text is cheaper to send than to parse here.
_POINT_TYPES = (
    "text", "text", "int4", "float4", "float4", "int4", "int4", "float4", "float4", "int4[]",
    "bool", "text",
)  # fmt: skip


def to_draw(connection: Connection, library_id: str) -> list[tuple[str, str]]:
    """(id, content hash) of every memory of the library, whatever its status."""
    rows = connection.execute(
        select(MemoryRow.id, MemoryRow.content_hash)
        .where(MemoryRow.library_id == library_id)
        .order_by(MemoryRow.id)
    )
    return [(row.id, row.content_hash) for row in rows]


def contents(connection: Connection, ids: Sequence[str]) -> dict[str, str]:
    """Id → content, for an embedder on trial."""
    rows = connection.execute(select(MemoryRow.id, MemoryRow.content).where(MemoryRow.id.in_(ids)))
    return {row.id: row.content for row in rows}


def begin(connection: Connection, **values: Any) -> str:
    """A picture that is being drawn; returns its id."""
    return str(
        connection.execute(
            insert(ProjectionRow).values(state="drawing", **values).returning(ProjectionRow.id)
        ).scalar_one()
    )


def put_points(
    connection: Connection, projection_id: str, points: Iterable[tuple[Any, ...]]
) -> None:
    """Replace the picture's points; tuples in the order of `_POINT_COLUMNS`. Memories that were
    deleted meanwhile are skipped."""
    driver = connection.connection.driver_connection
    assert driver is not None
    connection.execute(
        delete(ProjectionPointRow).where(ProjectionPointRow.projection_id == projection_id)
    )
    types = ", ".join(f"{c} {t}" for c, t in zip(_POINT_COLUMNS, _POINT_TYPES, strict=True))
    with driver.cursor() as cursor:
        cursor.execute(f"CREATE TEMP TABLE drawn ({types}) ON COMMIT DROP")
        with cursor.copy("COPY drawn FROM STDIN (FORMAT BINARY)") as copy:
            copy.set_types(_POINT_TYPES)
            for point in points:
                copy.write_row(point)
    listed = ", ".join(f"drawn.{c}" for c in _POINT_COLUMNS[1:])
    connection.execute(
        text(
            f"INSERT INTO projection_points (projection_id, {', '.join(_POINT_COLUMNS)}) "  # noqa: S608
            f"SELECT :projection, m.id, {listed} FROM drawn "
            "JOIN memories m ON m.id = drawn.memory_id::uuid FOR KEY SHARE OF m"
        ),
        {"projection": projection_id},
    )
    connection.execute(text("DROP TABLE drawn"))


def put_pairs(
    connection: Connection, projection_id: str, pairs: Iterable[tuple[str, str, float]]
) -> None:
    """Add near-duplicate pairs (first id, second id, cosine), of memories that still exist."""
    driver = connection.connection.driver_connection
    assert driver is not None
    with driver.cursor() as cursor:
        cursor.execute("CREATE TEMP TABLE paired (a text, b text, s float4) ON COMMIT DROP")
        with cursor.copy("COPY paired FROM STDIN (FORMAT BINARY)") as copy:
            copy.set_types(("text", "text", "float4"))
            for pair in pairs:
                copy.write_row(pair)
    connection.execute(
        text(
            "INSERT INTO projection_pairs (projection_id, first_id, second_id, similarity) "
            "SELECT :projection, f.id, g.id, s FROM paired "
            "JOIN memories f ON f.id = a::uuid JOIN memories g ON g.id = b::uuid "
            "FOR KEY SHARE OF f, g"
        ),
        {"projection": projection_id},
    )


def finish(connection: Connection, projection_id: str, **values: Any) -> None:
    """The picture is drawn. Pictures of the same vectors and settings, and those beyond the newest
    KEPT of the library, are removed."""
    row = connection.execute(
        update(ProjectionRow)
        .where(ProjectionRow.id == projection_id)
        .values(state="done", **values)
        .returning(ProjectionRow.library_id, ProjectionRow.collection_id, ProjectionRow.embedder,
                   ProjectionRow.settings)
    ).one()  # fmt: skip
    mine = ProjectionRow.library_id == row.library_id
    connection.execute(
        delete(ProjectionRow).where(
            mine,
            ProjectionRow.id != projection_id,
            ProjectionRow.collection_id.is_not_distinct_from(row.collection_id),
            ProjectionRow.embedder == row.embedder,
            ProjectionRow.settings == row.settings,
        )
    )
    newest = (
        select(ProjectionRow.id).where(mine).order_by(ProjectionRow.created_at.desc()).limit(KEPT)
    )
    connection.execute(delete(ProjectionRow).where(mine, ProjectionRow.id.not_in(newest)))


def discard(connection: Connection, ids: Sequence[str]) -> None:
    """Remove pictures that could not be finished."""
    connection.execute(delete(ProjectionRow).where(ProjectionRow.id.in_(ids)))


def pictures(connection: Connection, library_id: str) -> list[Any]:
    """The library's pictures, newest first, with whether their vectors are in use now."""
    return list(
        connection.execute(
            select(
                ProjectionRow.id, ProjectionRow.library_id, ProjectionRow.collection_id,
                ProjectionRow.embedder, ProjectionRow.settings, ProjectionRow.state,
                ProjectionRow.method, ProjectionRow.explanation, ProjectionRow.width,
                ProjectionRow.figures, ProjectionRow.created_at,
                (ProjectionRow.collection_id == LibraryRow.collection_id).label("current"),
                CollectionRow.state.label("collection_state"),
            )
            .join(LibraryRow, LibraryRow.id == ProjectionRow.library_id)
            .outerjoin(CollectionRow, CollectionRow.id == ProjectionRow.collection_id)
            .where(ProjectionRow.library_id == library_id)
            .order_by(ProjectionRow.created_at.desc(), ProjectionRow.id)
        )
    )  # fmt: skip


def stamp(connection: Connection, library_id: str) -> str:
    """Changes whenever a memory of the library is added, changed or deleted, or a point placed."""
    count, newest = connection.execute(
        select(func.count(), func.max(MemoryRow.updated_at)).where(
            MemoryRow.library_id == library_id
        )
    ).one()
    return f"{count} {newest}"


def points(connection: Connection, projection_id: str, actor: Actor) -> list[tuple[Any, ...]]:
    """What `actor` may see of a picture, by ordinal: the columns `viewing.MapView` is built from.
    Points that are not drawn carry `left_out`."""
    p, m = ProjectionPointRow, MemoryRow
    statement = (
        select(
            p.memory_id, p.ordinal, p.x, p.y, p.spot, p.cluster, p.isolation, p.preservation,
            p.placed, p.left_out, (p.content_hash != m.content_hash).label("edited"),
            m.title, func.left(m.content, TEXT_SHOWN).label("text"), m.memory_type, m.status,
            m.scope, m.scope_id, m.user_id, m.created_at, m.confidence, m.access_count,
            m.private_to.is_not(None).label("private"),
        )
        .join(m, m.id == p.memory_id)
        .where(p.projection_id == projection_id, queries.visible(actor))
        .order_by(p.ordinal)
    )  # fmt: skip
    return [tuple(row) for row in connection.execute(statement)]


def pairs(
    connection: Connection, projection_id: str, actor: Actor, limit: int
) -> list[tuple[str, str, float]]:
    """Near-duplicate pairs of which the actor may see both, most similar first."""
    seen = select(MemoryRow.id).where(queries.visible(actor))
    p = ProjectionPairRow
    rows = connection.execute(
        select(p.first_id, p.second_id, p.similarity)
        .where(p.projection_id == projection_id, p.first_id.in_(seen), p.second_id.in_(seen))
        .order_by(p.similarity.desc(), p.first_id, p.second_id)
        .limit(limit)
    )
    return [(row.first_id, row.second_id, row.similarity) for row in rows]


def neighbours(
    connection: Connection, projection_id: str, actor: Actor, ids: Sequence[str] | None = None
) -> dict[str, list[str]]:
    """Memory id → ids of its nearest, nearest first, of what the actor may see."""
    p = ProjectionPointRow
    here = (
        select(p.memory_id, p.ordinal, p.neighbours)
        .join(MemoryRow, MemoryRow.id == p.memory_id)
        .where(p.projection_id == projection_id, p.left_out == "", queries.visible(actor))
    )
    asked = here if ids is None else here.where(p.memory_id.in_(ids))
    rows = connection.execute(asked).all()
    if ids is None:
        names = {row.ordinal: row.memory_id for row in rows}
    else:
        wanted = {o for row in rows for o in row.neighbours}
        names = {
            row.ordinal: row.memory_id
            for row in connection.execute(here.where(p.ordinal.in_(wanted)))
        }
    return {row.memory_id: [names[o] for o in row.neighbours if o in names] for row in rows}


def missing(connection: Connection, projection_id: str, library_id: str, limit: int) -> list[Any]:
    """Memories that the picture lacks, that were edited since, or that had no vector when it was
    drawn: id, content_hash, lacking (True where there was no vector)."""
    p = ProjectionPointRow
    return list(
        connection.execute(
            select(
                MemoryRow.id, MemoryRow.content_hash,
                func.coalesce(
                    (p.left_out == "missing") & (p.content_hash == MemoryRow.content_hash), false()
                ).label("lacking"),
            )
            .outerjoin(p, (p.memory_id == MemoryRow.id) & (p.projection_id == projection_id))
            .where(
                MemoryRow.library_id == library_id,
                or_(
                    p.memory_id.is_(None),
                    p.content_hash != MemoryRow.content_hash,
                    p.left_out == "missing",
                ),
            )
            .order_by(p.memory_id.is_not(None), MemoryRow.id)
            .limit(limit)
        )
    )  # fmt: skip


def unplaced(connection: Connection, projection_id: str, library_id: str, actor: Actor) -> int:
    """How many memories the actor may see lack a point."""
    p = ProjectionPointRow
    return (
        connection.scalar(
            select(func.count())
            .select_from(MemoryRow)
            .outerjoin(p, (p.memory_id == MemoryRow.id) & (p.projection_id == projection_id))
            .where(
                MemoryRow.library_id == library_id, p.memory_id.is_(None), queries.visible(actor)
            )
        )
        or 0
    )


def fitted(
    connection: Connection, projection_id: str, ids: Sequence[str], actor: Actor | None = None
) -> dict[str, Any]:
    """Memory id → its point, of those among `ids` that were fitted, not placed, and not edited
    since. With an actor: of what they may see."""
    p = ProjectionPointRow
    other = aliased(MemoryRow)
    statement = (
        select(p.memory_id, p.ordinal, p.x, p.y, p.spot, p.cluster)
        .join(other, other.id == p.memory_id)
        .where(
            p.projection_id == projection_id, p.memory_id.in_(ids), p.left_out == "",
            p.placed.is_(False), p.content_hash == other.content_hash,
        )
    )  # fmt: skip
    if actor is not None:
        statement = statement.where(
            p.memory_id.in_(select(MemoryRow.id).where(queries.visible(actor)))
        )
    return {row.memory_id: row for row in connection.execute(statement)}


def add_points(connection: Connection, projection_id: str, rows: list[dict[str, Any]]) -> None:
    """Add or replace single points, for memories that came after the picture."""
    if not rows:
        return
    last = connection.scalar(
        select(func.coalesce(func.max(ProjectionPointRow.ordinal), -1)).where(
            ProjectionPointRow.projection_id == projection_id
        )
    )
    statement = insert(ProjectionPointRow).values(
        [
            {"projection_id": projection_id, **row, "ordinal": (last or 0) + 1 + i,
             "spot": (last or 0) + 1 + i if row["spot"] is None else row["spot"]}
            for i, row in enumerate(rows)
        ]
    )  # fmt: skip
    changed = {
        c: statement.excluded[c] for c in (*_POINT_COLUMNS[1:2], "x", "y", "spot", "cluster",
        "isolation", "preservation", "neighbours", "placed", "left_out")
    }  # fmt: skip
    connection.execute(
        statement.on_conflict_do_update(
            index_elements=[ProjectionPointRow.projection_id, ProjectionPointRow.memory_id],
            set_=changed,
        )
    )
    # An edited memory's old pairs say nothing about its new text.
    ids = [row["memory_id"] for row in rows]
    connection.execute(
        delete(ProjectionPairRow).where(
            ProjectionPairRow.projection_id == projection_id,
            or_(ProjectionPairRow.first_id.in_(ids), ProjectionPairRow.second_id.in_(ids)),
        )
    )
