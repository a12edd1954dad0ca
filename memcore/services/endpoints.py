"""Model endpoints: per user or shared, their keys encrypted at rest and never given out again.

A library names its embedder `endpoint:<id>`. Model and dimensions of an endpoint that a library
uses stay as they are: other vectors need another endpoint and a re-embedding.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import IntegrityError

from memcore.database import queries
from memcore.database.tables import EndpointRow, LibraryRow
from memcore.embeddings import Embedder, open_embedder
from memcore.endpoints import guard
from memcore.endpoints.client import Client
from memcore.errors import Conflict, InvalidInput, NotFound, PermissionDenied
from memcore.models import Actor, Endpoint
from memcore.secrets import Secret, Vault, masked
from memcore.text import clean

KINDS = ("embedding", "chat")
_INTERACTIVE = 15.0
_BACKGROUND = 120.0
"""Seconds a call may take with all its tries, while somebody waits and while nobody does."""


@dataclass(frozen=True, slots=True)
class Tested:
    """What a test call found."""

    model: str
    dimensions: int | None
    milliseconds: float
    sample: str
    """The first numbers of a vector, or the first words of a reply."""


class EndpointService:
    def __init__(self, engine: Any, vault: Vault) -> None:
        self._engine = engine
        self._vault = vault
        self._opened: dict[tuple[str, bool], tuple[Any, Any]] = {}
        self._lock = threading.Lock()

    # ---- reading

    def all(self, *, actor: Actor) -> list[Endpoint]:
        """Shared ones and the actor's own; an operator sees all. Keys masked."""
        query = select(EndpointRow).order_by(EndpointRow.kind, EndpointRow.name, EndpointRow.id)
        if not actor.operator:
            query = query.where(
                or_(
                    EndpointRow.owner_user_id.is_(None),
                    EndpointRow.owner_user_id == actor.user_id,
                )
            )
        with self._engine.connect() as connection:
            return [self._endpoint(row) for row in connection.execute(query)]

    def get(self, endpoint_id: str, *, actor: Actor) -> Endpoint:
        """Raises NotFound, also for another user's."""
        return self._endpoint(self._row(endpoint_id, actor))

    def used_by(self, endpoint_id: str) -> list[str]:
        """Names of the libraries whose embedder it is."""
        with self._engine.connect() as connection:
            return list(
                connection.scalars(
                    select(LibraryRow.name)
                    .where(
                        LibraryRow.embedder == f"endpoint:{endpoint_id}",
                        LibraryRow.deleted_at.is_(None),
                    )
                    .order_by(LibraryRow.name)
                )
            )

    # ---- writing

    def create(
        self,
        name: str,
        *,
        actor: Actor,
        base_url: str,
        model: str,
        key: str = "",
        kind: str = "embedding",
        dimensions: int | None = None,
        shared: bool = False,
        options: Mapping[str, Any] | None = None,
    ) -> Endpoint:
        """A new endpoint of the actor's own, or a shared one, which only an operator makes.
        Raises InvalidInput, ConfigError (address), Conflict (name), PermissionDenied."""
        values = self._checked(
            name=name, base_url=base_url, model=model, kind=kind, dimensions=dimensions,
            options=options or {},
        )  # fmt: skip
        if shared and not actor.operator:
            raise PermissionDenied("Only an operator makes an endpoint that all users share.")
        values["owner_user_id"] = None if shared or actor.operator else actor.user_id
        values["api_key"] = self._vault.seal(Secret(key.strip()))
        with self._engine.begin() as connection:
            if values["owner_user_id"] is not None:
                queries.introduce(connection, values["owner_user_id"], None)
            try:
                row = connection.execute(
                    insert(EndpointRow).values(**values).returning(*EndpointRow.__table__.columns)
                ).one()
            except IntegrityError:
                raise Conflict(f"There is an endpoint called {values['name']!r} already.") from None
        return self._endpoint(row)

    def edit(
        self,
        endpoint_id: str,
        *,
        actor: Actor,
        name: str,
        base_url: str,
        model: str,
        key: str | None = None,
        dimensions: int | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> Endpoint:
        """Change it. `key` None keeps the stored key; a new host asks for the key again, so that
        nobody has a stored key sent to a server of theirs. Raises as `create` does, and Conflict
        for another model or other dimensions while a library uses it."""
        row = self._row(endpoint_id, actor)
        self._mine(row, actor)
        values = self._checked(
            name=name, base_url=base_url, model=model, kind=row.kind, dimensions=dimensions,
            options=row.options if options is None else options,
        )  # fmt: skip
        users = self.used_by(row.id)
        moved = values["model"] != row.model or (
            row.dimensions is not None and values["dimensions"] != row.dimensions
        )
        if users and moved:
            raise Conflict(
                f"{users[0]} was embedded with {row.model} ({row.dimensions} dimensions); other "
                "vectors cannot be compared with those.",
                hint="Make a new endpoint and change the library's embedder to it.",
            )
        before, after = guard.base_url(row.base_url), guard.base_url(values["base_url"])
        elsewhere = (before.host, before.port, before.scheme) != (
            after.host, after.port, after.scheme,
        )  # fmt: skip
        if key is not None:
            values["api_key"] = self._vault.seal(Secret(key.strip()))
        elif elsewhere and row.api_key is not None:
            raise InvalidInput(
                "The address is another server's, so its key is needed.",
                hint="Enter the API key again.",
            )
        with self._engine.begin() as connection:
            try:
                row = connection.execute(
                    update(EndpointRow)
                    .where(EndpointRow.id == row.id)
                    .values(updated_at=func.now(), **values)
                    .returning(*EndpointRow.__table__.columns)
                ).one()
            except IntegrityError:
                raise Conflict(f"There is an endpoint called {values['name']!r} already.") from None
        self.forget()
        return self._endpoint(row)

    def delete(self, endpoint_id: str, *, actor: Actor) -> None:
        """Remove it and its key. Raises Conflict while a library uses it."""
        row = self._row(endpoint_id, actor)
        self._mine(row, actor)
        if users := self.used_by(row.id):
            raise Conflict(
                f"{row.name} is the embedder of {', '.join(users)}.",
                hint="Change the embedder of these libraries first.",
            )
        with self._engine.begin() as connection:
            connection.execute(delete(EndpointRow).where(EndpointRow.id == row.id))
        self.forget()

    def rotate(self) -> int:
        """Encrypt all stored keys under the newest secret key; returns how many."""
        with self._engine.begin() as connection:
            rows = connection.execute(
                select(EndpointRow.id, EndpointRow.api_key)
                .where(EndpointRow.api_key.is_not(None))
                .with_for_update()
            ).all()
            for row in rows:
                connection.execute(
                    update(EndpointRow)
                    .where(EndpointRow.id == row.id)
                    .values(api_key=self._vault.rotate(row.api_key))
                )
        return len(rows)

    # ---- using

    def test(self, endpoint_id: str, *, actor: Actor) -> Tested:
        """Call it once. An embedding endpoint without dimensions gets those it answered with.
        Raises EndpointError and its kinds, ConfigError."""
        row = self._row(endpoint_id, actor)
        found = self.try_out(
            base_url=row.base_url, model=row.model, key=self._vault.open(row.api_key),
            kind=row.kind, dimensions=row.dimensions, options=row.options,
        )  # fmt: skip
        if row.dimensions is None and found.dimensions is not None:
            with self._engine.begin() as connection:
                connection.execute(
                    update(EndpointRow)
                    .where(EndpointRow.id == row.id)
                    .values(dimensions=found.dimensions)
                )
            self.forget()
        return found

    def try_out(
        self,
        *,
        base_url: str,
        model: str,
        key: Secret | None,
        kind: str = "embedding",
        dimensions: int | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> Tested:
        """Call an endpoint that need not be stored. Raises as `test` does."""
        client = _client(base_url, key, options or {}, _INTERACTIVE)
        try:
            began = time.perf_counter()
            if kind == "embedding":
                embedder = _embedder("test", client, model, dimensions, options or {}, None)
                vector = embedder.embed_query("memcore")
                sample = ", ".join(f"{x:.3f}" for x in vector[:4]) + ", …"
                length: int | None = len(vector)
            else:
                reply = client.ask(
                    lambda openai: openai.chat.completions.create(
                        model=model, messages=[{"role": "user", "content": "Answer: ready"}]
                    )
                )
                sample, length = (reply.choices[0].message.content or "")[:60], None
            spent = (time.perf_counter() - began) * 1e3
        finally:
            client.close()
        return Tested(model, length, spent, sample)

    def embedder(self, endpoint_id: str, *, background: bool = False) -> Embedder:
        """The embedder of a library; opened once. `background`: nobody waits for the answer."""

        def make(row: Any, client: Client) -> Any:
            return _embedder(
                f"endpoint:{row.id}", client, row.model, row.dimensions, row.options,
                _BACKGROUND if background else None,
            )  # fmt: skip

        embedder: Embedder = self._open(endpoint_id, background, make)
        return embedder

    def chat(self, endpoint_id: str, *, actor: Actor) -> tuple[Client, str]:
        """The connection of a chat endpoint, and its model."""
        row = self._row(endpoint_id, actor)
        client: Client = self._open(row.id, False, lambda _, opened: opened)
        return client, row.model

    def create_embeddings(self, user_id: str) -> Embedder:
        """The user's own embedder: their newest embedding endpoint, else the newest shared one,
        else the best offline model of this machine."""
        with self._engine.connect() as connection:
            found = connection.scalar(
                select(EndpointRow.id)
                .where(
                    EndpointRow.kind == "embedding",
                    or_(
                        EndpointRow.owner_user_id == user_id,
                        EndpointRow.owner_user_id.is_(None),
                    ),
                )
                .order_by(EndpointRow.owner_user_id.nulls_last(), EndpointRow.created_at.desc())
                .limit(1)
            )
        return open_embedder("local") if found is None else self.embedder(found)

    def forget(self) -> None:
        """Close connections; the next use opens them with what is configured then."""
        with self._lock:
            opened, self._opened = self._opened, {}
        for client, _ in opened.values():
            client.close()

    close = forget

    # ---- parts

    def _open(self, endpoint_id: str, background: bool, make: Any) -> Any:
        with self._lock:
            known = self._opened.get((endpoint_id, background))
            if known is not None:
                return known[1]
        row = self._row(endpoint_id, Actor("", operator=True))
        budget = _BACKGROUND if background else _INTERACTIVE
        client = _client(row.base_url, self._vault.open(row.api_key), row.options, budget)
        made = make(row, client)
        with self._lock:
            return self._opened.setdefault((endpoint_id, background), (client, made))[1]

    def _row(self, endpoint_id: str, actor: Actor) -> Any:
        query = select(*EndpointRow.__table__.columns).where(EndpointRow.id == endpoint_id)
        row = None
        if queries.is_uuid(endpoint_id):
            with self._engine.connect() as connection:
                row = connection.execute(query).first()
        if row is None or not (actor.operator or row.owner_user_id in (None, actor.user_id)):
            raise NotFound(f"There is no endpoint {endpoint_id!r}.", hint="See the Admin page.")
        return row

    def _mine(self, row: Any, actor: Actor) -> None:
        if not actor.operator and row.owner_user_id != actor.user_id:
            raise PermissionDenied("A shared endpoint is changed by an operator only.")

    def _checked(
        self,
        *,
        name: str,
        base_url: str,
        model: str,
        kind: str,
        dimensions: int | None,
        options: Mapping[str, Any],
    ) -> dict[str, Any]:
        name, model = clean(name), clean(model)
        if not 1 <= len(name) <= 100:
            raise InvalidInput(f"An endpoint's name has 1 to 100 characters; this has {len(name)}.")
        if not 1 <= len(model) <= 200:
            raise InvalidInput(
                "The model's name is missing.", hint="Such as text-embedding-3-small."
            )
        if kind not in KINDS:
            raise InvalidInput(f"kind is {kind!r}, but takes one of {', '.join(KINDS)}.")
        if dimensions is not None and not 1 <= dimensions <= 16_000:
            raise InvalidInput(f"dimensions is {dimensions}, outside its range from 1 to 16000.")
        url = guard.base_url(base_url)
        guard.check(url)
        return {
            "name": name, "base_url": str(url), "model": model, "kind": kind,
            "dimensions": dimensions if kind == "embedding" else None, "options": dict(options),
        }  # fmt: skip

    def _endpoint(self, row: Any) -> Endpoint:
        row = getattr(row, "EndpointRow", row)
        return Endpoint(
            row.id, row.name, row.kind, row.owner_user_id, row.base_url, row.model,
            row.dimensions, _hint(self._vault, row.api_key), row.options, row.created_at,
        )  # fmt: skip


def _hint(vault: Vault, sealed: bytes | None) -> str:
    from memcore.errors import ConfigError

    try:
        secret = vault.open(sealed)
    except ConfigError:
        return "cannot be decrypted"
    return masked(secret.reveal()) if secret else ""


def _client(base_url: str, key: Secret | None, options: Mapping[str, Any], budget: float) -> Client:
    timeout = float(options.get("timeout") or 10.0)
    return Client(base_url, key, timeout=timeout, budget=max(budget, timeout))


def _embedder(
    name: str,
    client: Client,
    model: str,
    dimensions: int | None,
    options: Mapping[str, Any],
    budget: float | None,
) -> Embedder:
    from memcore.embeddings.openai import EndpointEmbedder

    send = options.get("send_dimensions")
    return EndpointEmbedder(
        name, client, model, dimensions,
        send_dimensions=send if isinstance(send, bool) else None, budget=budget,
    )  # fmt: skip
