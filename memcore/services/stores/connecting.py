"""What differs between kinds of configured stores: their addresses, clients and collections."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from sqlalchemy import select
from sqlalchemy.exc import DBAPIError

from memcore.database import engine as database
from memcore.errors import DatabaseError, InvalidInput, StoreError
from memcore.models import Library
from memcore.secrets import Secret
from memcore.vectors import VectorStore

KINDS = {
    "memory": "This process's memory",
    "milvus": "Milvus",
    "elasticsearch": "Elasticsearch",
    "pgvector": "pgvector in another database",
}
EXAMPLES = {
    "milvus": "http://milvus.example:19530, or the path of a file ending in .db",
    "elasticsearch": "https://search.example:9200",
    "pgvector": "postgresql://user@host:5432/name",
}


def checked(kind: str, address: str, secret: str) -> tuple[str, str]:
    """The address without its password, and the secret: the password where none was given.
    Raises InvalidInput, ConfigError."""
    address = address.strip()
    if kind not in KINDS:
        raise InvalidInput(f"kind is {kind!r}, but takes one of {', '.join(KINDS)}.")
    if kind == "memory":
        return "", ""
    try:
        parts = urlsplit(address)
    except ValueError:
        raise InvalidInput("The store's address cannot be read.") from None
    written = "://" in address
    known = parts.scheme in ("http", "https", "postgresql", "postgres", "tcp")
    if not address or (written and not known):
        raise InvalidInput(
            "The store's address is missing or of an unknown kind.",
            hint=f"Write it like {EXAMPLES[kind]}.",
        )
    if written and parts.password:
        secret = secret or parts.password
        host = parts.netloc.rpartition("@")[2]
        user = f"{parts.username}@" if parts.username else ""
        address = urlunsplit(parts._replace(netloc=user + host))
    if kind == "elasticsearch" and not written:
        raise InvalidInput("The address has no scheme.", hint=f"Write {EXAMPLES[kind]}.")
    if kind == "milvus" and not written and not address.endswith(".db"):
        raise InvalidInput("A Milvus file's name ends in .db.")
    if kind == "pgvector":
        database.as_url(address)
    return address, secret


def connected(kind: str, address: str, secret: Secret | None) -> tuple[Any, Callable[[], None]]:
    """A client, and what closes it. Raises MissingExtra, StoreError."""
    if kind == "milvus":
        from memcore.vectors import milvus

        client = milvus.connect(address, secret)
        return client, client.close
    if kind == "elasticsearch":
        from memcore.vectors import elasticsearch

        client = elasticsearch.connect(address, secret)
        return client, client.close
    url = database.as_url(address)
    if secret:
        url = url.set(password=secret.reveal())
    engine = database.create(url.render_as_string(hide_password=False), pool_size=4)
    try:
        with engine.begin() as connection:
            database.need_pgvector(connection)
    except (DatabaseError, DBAPIError) as error:
        cause = error.message if isinstance(error, DatabaseError) else type(error).__name__
        raise StoreError(
            f"The database {address} cannot be used: {cause}",
            hint="Check its address, user and password.",
        ) from error
    finally:
        engine.dispose()  # connections from before the extension do not know its type
    return engine, engine.dispose


def reach(kind: str, name: str, address: str, client: Any) -> None:
    """Ask something small. Raises StoreError."""
    try:
        if kind == "milvus":
            client.list_collections()
        elif kind == "elasticsearch":
            client.info()
        elif kind == "pgvector":
            with client.connect() as connection:
                connection.execute(select(1))
    except Exception as error:
        # Each client has its own tree of errors; all mean that the store cannot be used.
        raise StoreError(
            f"{name} at {address} cannot be reached ({type(error).__name__}).",
            hint="Check that it runs, its address, and its secret.",
        ) from error


def collection(kind: str, address: str, client: Any, library: Library) -> VectorStore:
    """The library's current collection there, made where it is not. Raises StoreError."""
    name = f"memcore_{library.id.replace('-', '')[:12]}_{library.collection_id}"
    if kind == "memory":
        from memcore.vectors.inmemory import InMemoryStore

        return InMemoryStore(library.dimensions)
    if kind == "milvus":
        from memcore.vectors.milvus import MilvusStore

        return MilvusStore(client, address, name, library.dimensions)
    if kind == "elasticsearch":
        from memcore.vectors.elasticsearch import ElasticsearchStore

        return ElasticsearchStore(client, name, library.dimensions)
    from memcore.vectors.pgvector_elsewhere import PgVectorElsewhereStore

    return PgVectorElsewhereStore(client, name, library.dimensions)
