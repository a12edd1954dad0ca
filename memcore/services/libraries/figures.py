"""What a library holds, for its card and its statistics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import func, select, text

from memcore.database import queries
from memcore.database.tables import MemoryRow, RecallRow
from memcore.models import Actor, Library, Memory, MemoryType, Status
from memcore.services.runtime import Runtime
from memcore.settings import Resolved


@dataclass(frozen=True, slots=True)
class Card:
    """A library at a glance."""

    library: Library
    resolved: Resolved
    store: str
    """Name of its vector store."""
    agents: tuple[str, ...]
    active: int
    memories: int
    """Of every status."""
    last_activity: datetime | None
    """When a memory was last stored, changed or recalled by an agent."""
    judged: int
    """Drafts the gate judged in the last 30 days."""
    passed: int
    reembedding: bool
    """True while it is being given another embedder."""
    half_built: bool
    """True where that stopped before its end: begun again, it goes on where it stopped."""

    @property
    def pass_rate(self) -> float | None:
        """None where nothing was judged."""
        return self.passed / self.judged if self.judged else None


@dataclass(frozen=True, slots=True)
class Contents:
    """What goes with a library when it is deleted."""

    memories: int
    agents: int
    decisions: int
    recalls: int


@dataclass(frozen=True, slots=True)
class Statistics:
    """Counts are memories the actor may see."""

    total: int
    types: Mapping[MemoryType, int]
    """Active ones."""
    statuses: Mapping[Status, int]
    most_used: tuple[Memory, ...]
    """Up to five, most used first."""
    recalls: int
    recalls_with_hits: int
    oldest: datetime | None
    newest: datetime | None
    expiring: int
    """Active ones that expire within seven days."""
    expired: int
    """Active ones past their expiry: not recalled, archived by the next sweep."""

    @property
    def hit_share(self) -> float | None:
        """Share of recalls with a hit; None where none was logged."""
        return self.recalls_with_hits / self.recalls if self.recalls else None


_CARDS = text(
    """
    SELECT l.id::text AS id,
        (SELECT array_agg(a.name ORDER BY a.name) FROM agents a WHERE a.library_id = l.id)
            AS agents,
        m.active, m.memories, m.last_activity, d.judged, d.passed,
        EXISTS (SELECT 1 FROM collections c WHERE c.library_id = l.id AND c.state = 'building')
            AS building
    FROM libraries l,
    LATERAL (SELECT count(*) FILTER (WHERE status = 'active') AS active, count(*) AS memories,
        greatest(max(updated_at), max(last_used_at)) AS last_activity
        FROM memories WHERE library_id = l.id) m,
    LATERAL (SELECT count(*) AS judged, count(*) FILTER (WHERE accepted) AS passed
        FROM decisions WHERE library_id = l.id AND at > now() - interval '30 days') d
    WHERE l.deleted_at IS NULL
    """
)


class LibraryFigures:
    """Part of LibraryService."""

    _runtime: Runtime

    def get(self, library_id: str) -> Library:
        raise NotImplementedError  # Keeping has it

    def all(self) -> list[Library]:
        raise NotImplementedError  # Keeping has it

    def cards(self, *, search: str = "") -> list[Card]:
        """One for each library whose name contains `search`, oldest first."""
        wanted = search.strip().casefold()
        libraries = [x for x in self.all() if wanted in x.name.casefold()]
        with self._runtime.engine.connect() as connection:
            counts = {row.id: row for row in connection.execute(_CARDS)}
        busy = self._runtime.jobs.running("reembed")
        out = []
        for library in libraries:
            row = counts.get(library.id)
            if row is None:
                continue  # deleted since
            found = self._runtime.settings_of(library)
            out.append(
                Card(
                    # A plain dict of sources: caches copy what they keep.
                    library, Resolved(found.settings, dict(found.sources)),
                    self._runtime.stores.name_of(library.vector_store),
                    tuple(row.agents or ()), row.active, row.memories, row.last_activity,
                    row.judged, row.passed, library.id in busy,
                    row.building and library.id not in busy,
                )
            )  # fmt: skip
        return out

    def contents(self, library_id: str) -> Contents:
        """What goes with it."""
        library = self.get(library_id)
        with self._runtime.engine.connect() as connection:
            row = connection.execute(
                text(
                    "SELECT (SELECT count(*) FROM memories WHERE library_id = :id) AS memories, "
                    "(SELECT count(*) FROM agents WHERE library_id = :id) AS agents, "
                    "(SELECT count(*) FROM decisions WHERE library_id = :id) AS decisions, "
                    "(SELECT count(*) FROM recalls WHERE library_id = :id) AS recalls"
                ),
                {"id": library.id},
            ).one()
        return Contents(*row)

    def statistics(self, library_id: str, *, actor: Actor) -> Statistics:
        """Counted now."""
        m, library = MemoryRow, self.get(library_id)
        mine = (m.library_id == library.id, queries.visible(actor))
        active = m.status == Status.ACTIVE
        with self._runtime.engine.connect() as connection:
            groups = connection.execute(
                select(m.status, m.memory_type, func.count())
                .where(*mine)
                .group_by(m.status, m.memory_type)
            ).all()
            row = connection.execute(
                select(
                    func.min(m.created_at).label("oldest"),
                    func.max(m.created_at).label("newest"),
                    func.count()
                    .filter(active, m.expires_at.between(
                        func.now(), func.now() + timedelta(days=7)
                    ))
                    .label("expiring"),
                    func.count().filter(active, ~queries.unexpired()).label("expired"),
                ).where(*mine)
            ).one()  # fmt: skip
            used = connection.execute(
                select(*queries.MEMORY_COLUMNS)
                .where(*mine, active, m.access_count > 0)
                .order_by(m.access_count.desc(), m.last_used_at.desc(), m.id)
                .limit(5)
            ).all()
            r = RecallRow
            own = r.user_id == actor.user_id
            recalls = connection.execute(
                select(
                    func.count(), func.count().filter(func.jsonb_array_length(r.hits) > 0)
                ).where(r.library_id == library.id, *(() if actor.operator else (own,)))
            ).one()
        statuses = dict.fromkeys(Status, 0)
        types: dict[MemoryType, int] = {}
        for status, memory_type, count in groups:
            statuses[status] += count
            if status == Status.ACTIVE:
                types[memory_type] = types.get(memory_type, 0) + count
        return Statistics(
            sum(statuses.values()), types, statuses,
            tuple(queries.memory_from(u) for u in used), recalls[0], recalls[1],
            row.oldest, row.newest, row.expiring, row.expired,
        )  # fmt: skip
