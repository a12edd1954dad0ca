"""A database full of made-up memories, for the benchmarks beside this file."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

import numpy as np
import psycopg
from pgvector.psycopg import register_vector

from memcore.core import Core
from memcore.embeddings import Vectors
from memcore.models import Library
from memcore.rules import lexical
from memcore.text import content_hash

USERS = 1000
_HEADS = "ba ce di fo gu ha ke li mo nu pa re si to vu ya zo".split()
_TAILS = "lan mer nos pik rud sel tam vor wix zan dol fen".split()
WORDS = [head + tail for head in _HEADS for tail in _TAILS]


@dataclass(frozen=True)
class World:
    core: Core
    library: Library
    ids: list[str]
    users: np.ndarray[Any, Any]
    """Number of each memory's user."""
    vectors: Vectors


def driver(core: Core) -> psycopg.Connection[Any]:
    """A connection of its own, past SQLAlchemy, that knows vectors."""
    url = core.runtime.engine.url.set(drivername="postgresql")
    connection = psycopg.connect(
        url.render_as_string(hide_password=False),
        autocommit=True,
        options="-c timezone=UTC -c jit=off -c plan_cache_mode=force_generic_plan",
    )
    register_vector(connection)
    return connection


def vectors(count: int, dimensions: int, chance: np.random.Generator) -> Vectors:
    """Unit vectors in fifty clouds, as texts about fifty matters would be."""
    centres = chance.standard_normal((50, dimensions), dtype=np.float32)
    out = centres[chance.integers(50, size=count)]
    out += chance.standard_normal((count, dimensions), dtype=np.float32) * 1.2
    out /= np.linalg.norm(out, axis=1, keepdims=True)
    return out


def sentence(chance: np.random.Generator, number: int) -> str:
    """Twelve words and a number that makes it unlike every other."""
    return " ".join(WORDS[w] for w in chance.integers(len(WORDS), size=12)) + f" {number}"


def build(core: Core, size: int, dimensions: int, people: int = USERS) -> World:
    """`size` memories of `people` users in no order, straight through COPY."""
    library = core.libraries.create(f"{size} x {dimensions}", embedder=f"hash:{dimensions}")
    chance = np.random.default_rng(size + dimensions)
    made = vectors(size, dimensions, chance)
    ids = [str(uuid.UUID(bytes=chance.bytes(16))) for _ in range(size)]
    users = chance.permutation(np.arange(size) % people)
    hashes = []
    with driver(core) as connection:
        connection.execute(
            "INSERT INTO users SELECT 'u' || n FROM generate_series(0, %s) n "
            "ON CONFLICT DO NOTHING",
            [people - 1],
        )
        # No foreign key is looked up: what is copied here fits together by construction.
        connection.execute("SET session_replication_role = replica")
        with connection.cursor().copy(
            "COPY memories (id, library_id, user_id, scope, scope_id, memory_type, content, "
            "confidence, created_by, content_hash, vector_id, keywords) FROM STDIN"
        ) as copy:
            for i in range(size):
                text = sentence(chance, i)
                hashes.append(content_hash(text))
                user = f"u{users[i]}"
                terms = " ".join(f"'{term}'" for term in sorted(lexical.index_terms(text)))
                sure = round(float(chance.uniform(0.6, 1)), 2)
                copy.write_row((ids[i], library.id, user, "user", user, "fact", text, sure, user,
                                hashes[i], ids[i], terms))  # fmt: skip
        with connection.cursor().copy(
            "COPY embeddings (collection_id, memory_id, content_hash, embedding) "
            "FROM STDIN (FORMAT BINARY)"
        ) as copy:
            copy.set_types(["int8", "uuid", "text", "vector"])
            for i in range(size):
                copy.write_row((library.collection_id, uuid.UUID(ids[i]), hashes[i], made[i]))
        connection.execute("VACUUM ANALYZE memories")
        connection.execute("ANALYZE embeddings")
    return World(core, library, ids, users, made)
