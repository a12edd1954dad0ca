"""Configured vector stores beside pgvector in the main database: made, tested, counted, opened.

One `VectorStore` per collection and process, one client per configured store; both are opened
anew after the configuration changed. The database keeps every vector (vectors/mirror.py), so a
store can be emptied, moved or lost without losing a memory.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from memcore.database import queries
from memcore.database.jobs import Job, Jobs, Report
from memcore.database.tables import LibraryRow, VectorStoreRow
from memcore.errors import Conflict, InvalidInput, MemcoreError, NotFound, StoreError
from memcore.models import Actor, ConfiguredStore, Library
from memcore.rules import permissions
from memcore.secrets import Secret, Vault, masked
from memcore.services.stores import connecting
from memcore.services.stores.connecting import EXAMPLES, KINDS
from memcore.text import clean
from memcore.vectors import VectorStore
from memcore.vectors.mirror import MirroredStore
from memcore.vectors.pgvector import PgVectorStore

MAIN = "pgvector"
__all__ = ["EXAMPLES", "KINDS", "MAIN", "StoreService", "StoreStatus"]
MAIN = "pgvector"


@dataclass(frozen=True, slots=True)
class StoreStatus:
    """What a test found."""

    reachable: bool
    milliseconds: float
    collections: int
    """Libraries that keep their vectors there."""
    vectors: int
    trouble: str


class StoreService:
    def __init__(self, engine: Engine, vault: Vault, jobs: Jobs) -> None:
        self._engine = engine
        self._vault = vault
        self._jobs = jobs
        self._clients: dict[str, tuple[Any, Callable[[], None]]] = {}
        self._opened: dict[tuple[int, str], VectorStore] = {}
        self._names: dict[str, str] = {}
        self._lock = threading.RLock()

    # ---- configuring

    def all(self) -> list[ConfiguredStore]:
        """By name; the main database's own is not among them."""
        with self._engine.connect() as connection:
            rows = connection.execute(
                select(*VectorStoreRow.__table__.columns).order_by(VectorStoreRow.name)
            )
            return [self._store(row) for row in rows]

    def get(self, store_id: str) -> ConfiguredStore:
        """Raises NotFound."""
        return self._store(self._row(store_id))

    def name_of(self, store_id: str) -> str:
        """For people; a store that is gone is called by its id."""
        if store_id == MAIN:
            return MAIN
        with self._lock:
            if store_id not in self._names:
                try:
                    self._names[store_id] = self.get(store_id).name
                except NotFound:
                    return store_id
            return self._names[store_id]

    def create(
        self, name: str, *, kind: str, address: str = "", secret: str = "",
        actor: Actor | None = None,
    ) -> ConfiguredStore:  # fmt: skip
        """A new store; nothing is connected to yet. A password in the address is taken out and
        kept as the secret. Raises InvalidInput, Conflict (name taken), PermissionDenied."""
        permissions.need_operator(actor)
        values = self._checked(name, kind, address, secret)
        with self._engine.begin() as connection:
            try:
                row = connection.execute(
                    insert(VectorStoreRow)
                    .values(kind=kind, **values)
                    .returning(*VectorStoreRow.__table__.columns)
                ).one()
            except IntegrityError:
                raise Conflict(f"There is a store called {values['name']!r} already.") from None
        return self._store(row)

    def edit(
        self, store_id: str, *, name: str, address: str = "", secret: str | None = None,
        actor: Actor | None = None,
    ) -> ConfiguredStore:  # fmt: skip
        """Change it; `secret` None keeps the stored one, unless the address names another host.
        At a new address every vector is put there before the next search. Raises as `create`."""
        permissions.need_operator(actor)
        row = self._row(store_id)
        values = self._checked(name, row.kind, address, secret or "")
        moved = values["config"] != row.config
        if secret is None and values["secret"] is None:
            if moved and row.secret is not None:
                raise InvalidInput(
                    "The address is another one, so its secret is needed.", hint="Enter it again."
                )
            values.pop("secret")
        with self._engine.begin() as connection:
            try:
                row = connection.execute(
                    update(VectorStoreRow)
                    .where(VectorStoreRow.id == row.id)
                    .values(updated_at=func.now(), **values)
                    .returning(*VectorStoreRow.__table__.columns)
                ).one()
            except IntegrityError:
                raise Conflict(f"There is a store called {values['name']!r} already.") from None
            if moved:
                for library_id, _ in self._users(connection, row.id):
                    queries.queue_vectors(connection, library_id)
        self.forget()
        return self._store(row)

    def delete(self, store_id: str, *, actor: Actor | None = None) -> None:
        """Forget it; what it holds stays there. Raises Conflict while a library uses it."""
        permissions.need_operator(actor)
        row = self._row(store_id)
        with self._engine.begin() as connection:
            if users := self._users(connection, row.id):
                raise Conflict(
                    f"{row.name} holds the vectors of {', '.join(name for _, name in users)}.",
                    hint="Move these libraries to another store first.",
                )
            connection.execute(delete(VectorStoreRow).where(VectorStoreRow.id == row.id))
        self.forget()

    def test(self, store_id: str) -> StoreStatus:
        """Connect and count. Trouble is a value here: a page shows stores that are down."""
        began = time.perf_counter()
        libraries = self._libraries(MAIN if store_id == MAIN else self._row(store_id).id)
        vectors, trouble = 0, ""
        try:
            if store_id != MAIN:
                self._reach(self._row(store_id))
            for library in libraries:
                store = self.open(library)
                inner = store if store_id == MAIN else self._inner(library)
                vectors += inner.count()
        except MemcoreError as error:
            trouble = str(error)
        spent = (time.perf_counter() - began) * 1e3
        return StoreStatus(not trouble, spent, len(libraries), vectors, trouble)

    def rotate(self) -> int:
        """Encrypt all stored secrets under the newest secret key; returns how many."""
        with self._engine.begin() as connection:
            rows = connection.execute(
                select(VectorStoreRow.id, VectorStoreRow.secret)
                .where(VectorStoreRow.secret.is_not(None))
                .with_for_update()
            ).all()
            for row in rows:
                connection.execute(
                    update(VectorStoreRow)
                    .where(VectorStoreRow.id == row.id)
                    .values(secret=self._vault.rotate(row.secret))
                )
        return len(rows)

    # ---- using

    def open(self, library: Library) -> VectorStore:
        """The library's store; opened once per process. Raises NotFound, StoreError,
        MissingExtra."""
        key = (library.collection_id, library.vector_store)
        with self._lock:
            if key not in self._opened:
                main = PgVectorStore(self._engine, library.collection_id, library.dimensions)
                if library.vector_store == MAIN:
                    self._opened[key] = main
                else:
                    kind = self._row(library.vector_store).kind
                    self._opened[key] = MirroredStore(
                        self._engine, library.collection_id, lambda: self._inner(library), main,
                        private=kind == "memory",
                    )  # fmt: skip
            return self._opened[key]

    def move(self, library: Library, store_id: str, *, actor: Actor | None = None) -> Job:
        """Keep the library's vectors in another store from now on. Until that has taken over all
        of them the database answers. Raises NotFound, StoreError (it cannot be reached)."""
        permissions.need_operator(actor)
        if store_id != MAIN:
            self._reach(self._row(store_id))
        with self._engine.begin() as connection:
            connection.execute(
                update(LibraryRow)
                .where(LibraryRow.id == library.id)
                .values(vector_store=store_id, updated_at=func.now())
            )
            queries.queue_vectors(connection, library.id)
        with self._lock:
            self._opened = {k: v for k, v in self._opened.items() if k[0] != library.collection_id}
        return self._jobs.start(
            "store", library.id, lambda report: self._fill(library.id, report), {"store": store_id}
        )

    def level(self, library: Library, report: Report) -> str:
        """Bring the library's other store level with the database: put what is absent or changed,
        remove orphans. Returns what was done."""
        store = self.open(library)
        if not isinstance(store, MirroredStore):
            return ""
        report("Carrying changes over", 0, 0)
        store.catch_up()
        with self._engine.connect() as connection:
            here = _ids(connection, library.collection_id)
        there = store.ids()
        wrong = sorted(here ^ there)
        for start in range(0, len(wrong), 500):
            report("Repairing the store", start, len(wrong))
            store.level(wrong[start : start + 500])
        return (
            f"{self.name_of(library.vector_store)}: {len(here - there)} vectors put back, "
            f"{len(there - here)} orphans removed."
        )

    def forget(self) -> None:
        """Close everything; the next use opens it with what is configured then."""
        with self._lock:
            for store in self._opened.values():
                store.close()
            for _, close in self._clients.values():
                close()
            self._opened.clear()
            self._clients.clear()
            self._names.clear()

    close = forget

    # ---- parts

    def _fill(self, library_id: str, report: Report) -> str:
        with self._engine.connect() as connection:
            (library,) = [x for x in self._libraries(None, connection) if x.id == library_id]
        store = self.open(library)
        if not isinstance(store, MirroredStore):
            return "The vectors are in the database."
        with self._engine.connect() as connection:
            total = len(_ids(connection, library.collection_id))
        report("Filling the store", 0, total)
        store.catch_up(lambda done: report("Filling the store", min(done, total), total))
        return f"{store.count()} of {total} vectors are in {self.name_of(library.vector_store)}."

    def _inner(self, library: Library) -> VectorStore:
        """The collection in the configured store itself."""
        row = self._row(library.vector_store)
        address = row.config["address"]
        client = None if row.kind == "memory" else self._client(row)
        return connecting.collection(row.kind, address, client, library)

    def _reach(self, row: Any) -> None:
        """Connect and ask something small. Raises StoreError, MissingExtra."""
        if row.kind == "memory":
            return
        try:
            connecting.reach(row.kind, row.name, row.config["address"], self._client(row))
        except StoreError:
            with self._lock:
                if kept := self._clients.pop(row.id, None):
                    kept[1]()
            raise

    def _client(self, row: Any) -> Any:
        with self._lock:
            if row.id not in self._clients:
                self._clients[row.id] = connecting.connected(
                    row.kind, row.config["address"], self._vault.open(row.secret)
                )
            return self._clients[row.id][0]

    def _checked(self, name: str, kind: str, address: str, secret: str) -> dict[str, Any]:
        name = clean(name)
        if not 1 <= len(name) <= 100 or name == MAIN:
            raise InvalidInput("A store's name has 1 to 100 characters and is not 'pgvector'.")
        address, secret = connecting.checked(kind, address, secret)
        return {
            "name": name, "config": {"address": address},
            "secret": self._vault.seal(Secret(secret.strip())),
        }  # fmt: skip

    def _row(self, store_id: str) -> Any:
        row = None
        if queries.is_uuid(store_id):
            with self._engine.connect() as connection:
                row = connection.execute(
                    select(*VectorStoreRow.__table__.columns).where(VectorStoreRow.id == store_id)
                ).first()
        if row is None:
            raise NotFound(
                f"There is no vector store {store_id!r}.", hint="See the Admin page for all."
            )
        return row

    def _store(self, row: Any) -> ConfiguredStore:
        try:
            secret = self._vault.open(row.secret)
            shown = masked(secret.reveal()) if secret else ""
        except MemcoreError:
            shown = "cannot be decrypted"
        address = str(row.config.get("address", ""))
        return ConfiguredStore(row.id, row.name, row.kind, address, shown, row.created_at)

    def _users(self, connection: Any, store_id: str) -> list[tuple[str, str]]:
        rows = connection.execute(
            select(LibraryRow.id, LibraryRow.name).where(
                LibraryRow.vector_store == store_id, LibraryRow.deleted_at.is_(None)
            )
        )
        return [(row.id, row.name) for row in rows]

    def _libraries(self, store_id: str | None, connection: Any = None) -> list[Library]:
        columns = [c for c in LibraryRow.__table__.columns if c.name != "deleted_at"]
        query = select(*columns).where(LibraryRow.deleted_at.is_(None))
        if store_id is not None:
            query = query.where(LibraryRow.vector_store == store_id)
        if connection is not None:
            return [Library(**row._mapping) for row in connection.execute(query)]
        with self._engine.connect() as own:
            return [Library(**row._mapping) for row in own.execute(query)]


def _ids(connection: Any, collection_id: int) -> set[str]:
    from sqlalchemy import text

    return set(
        connection.scalars(
            text("SELECT memory_id::text FROM embeddings WHERE collection_id = :c"),
            {"c": collection_id},
        )
    )
