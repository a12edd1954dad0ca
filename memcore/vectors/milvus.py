"""Milvus: a `milvus-lite` file on this machine, or a cluster by URL (extra `milvus`).

Read your writes: strong consistency everywhere; the file version also needs a flush before what
was written is found by its index. Results are re-sorted, since Milvus leaves ties in any order.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from memcore.embeddings import Vectors
from memcore.errors import MissingExtra, StoreError
from memcore.secrets import Secret
from memcore.text import shorten
from memcore.vectors import Match, Record, Where, checked, nearest_first, place

# Milvus answers no more than this at once.
_MOST = 16_384
_PAGE = 1000
# Asked for beyond k, so that ties at the cut can be settled by id.
_SPARE = 32


def connect(uri: str, token: Secret | None = None, *, timeout: float = 10.0) -> Any:
    """A client for `uri`: http(s)://host:port, or the path of a file ending in .db. Share it:
    a file can be opened once per process. Raises MissingExtra, StoreError."""
    try:
        from pymilvus import MilvusClient
    except ImportError:
        raise MissingExtra("pymilvus", "milvus") from None
    lite = "://" not in uri
    if lite:
        try:
            import milvus_lite  # noqa: F401
        except ImportError:
            raise MissingExtra("milvus-lite", "milvus") from None
        Path(uri).expanduser().resolve().parent.mkdir(parents=True, exist_ok=True)
    with _trouble(uri):
        return MilvusClient(
            uri=str(Path(uri).expanduser()) if lite else uri,
            token=token.reveal() if token else "",
            timeout=timeout,
        )


class MilvusStore:
    """One collection. The client stays its owner's: `close` leaves it open."""

    def __init__(self, client: Any, uri: str, name: str, dimensions: int) -> None:
        self._client = client
        self._uri = uri
        self._lite = "://" not in uri
        self._name = name
        self._dimensions = dimensions
        # milvus-lite runs in this process and is not made for several writers at once.
        self._turn: Any = threading.RLock()
        with _trouble(uri), self._turn:
            self._open()

    def _open(self) -> None:
        from pymilvus import DataType, MilvusClient

        if self._client.has_collection(self._name):
            described = self._client.describe_collection(self._name)
            dims = next(
                int(f["params"]["dim"]) for f in described["fields"] if f["name"] == "vector"
            )
            if dims != self._dimensions:
                raise StoreError(
                    f"The Milvus collection {self._name} holds {dims} dimensions, "
                    f"not {self._dimensions}.",
                    hint="Re-embed the library; it builds a new collection.",
                )
        else:
            schema = MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)
            schema.add_field("id", DataType.VARCHAR, is_primary=True, max_length=64)
            schema.add_field("vector", DataType.FLOAT_VECTOR, dim=self._dimensions)
            schema.add_field("place", DataType.VARCHAR, max_length=64)
            schema.add_field("status", DataType.VARCHAR, max_length=32)
            schema.add_field("content_hash", DataType.VARCHAR, max_length=128)
            index = self._client.prepare_index_params()
            index.add_index(
                "vector", index_type="FLAT" if self._lite else "AUTOINDEX", metric_type="COSINE"
            )
            self._client.create_collection(
                self._name, schema=schema, index_params=index, consistency_level="Strong"
            )
        self._client.load_collection(self._name)

    def upsert(self, records: Sequence[Record]) -> None:
        rows = [
            {
                "id": record.id,
                "vector": checked(record.vector, self._dimensions)[0],
                "place": place(record.scope, record.scope_id),
                "status": record.status.value,
                "content_hash": record.content_hash,
            }
            for record in records
        ]
        with _trouble(self._uri), self._turn:
            for start in range(0, len(rows), _PAGE):
                page = rows[start : start + _PAGE]
                done = self._client.upsert(self._name, page)
                if done.get("upsert_count", len(page)) != len(page):
                    raise StoreError(f"Milvus took {done['upsert_count']} of {len(page)} vectors.")
            self._written(bool(rows))

    def query(self, vector: Vectors, k: int, where: Where | None = None) -> list[Match]:
        asked = checked(vector, self._dimensions)[0]
        filter = _expression(where)
        if k < 1 or filter is None:
            return []
        with _trouble(self._uri), self._turn:
            (found,) = self._client.search(
                self._name,
                data=[asked],
                filter=filter,
                limit=min(k + _SPARE, _MOST),
                search_params={"metric_type": "COSINE"},
                consistency_level="Strong",
            )
        return nearest_first((Match(hit["id"], float(hit["distance"])) for hit in found), k)

    def fetch(self, ids: Sequence[str]) -> dict[str, Vectors]:
        out: dict[str, Vectors] = {}
        with _trouble(self._uri), self._turn:
            for start in range(0, len(ids), _PAGE):
                among = _among("id", ids[start : start + _PAGE])
                if not among:
                    continue
                rows = self._client.query(
                    self._name,
                    filter=among,
                    output_fields=["id", "vector"],
                    consistency_level="Strong",
                )
                out |= {row["id"]: np.asarray(row["vector"], dtype=np.float32) for row in rows}
        return out

    def delete(self, ids: Sequence[str]) -> None:
        with _trouble(self._uri), self._turn:
            for start in range(0, len(ids), _PAGE):
                self._client.delete(self._name, ids=list(ids[start : start + _PAGE]))
            self._written(bool(ids))

    def ids(self) -> set[str]:
        found: set[str] = set()
        with _trouble(self._uri), self._turn:
            pages = self._client.query_iterator(
                self._name, filter="", output_fields=["id"], batch_size=_PAGE,
                consistency_level="Strong",
            )  # fmt: skip
            while page := pages.next():
                found |= {row["id"] for row in page}
            pages.close()
        return found

    def count(self, where: Where | None = None) -> int:
        filter = _expression(where)
        if filter is None:
            return 0
        with _trouble(self._uri), self._turn:
            rows = self._client.query(
                self._name,
                filter=filter,
                output_fields=["count(*)"],
                consistency_level="Strong",
            )
        return int(rows[0]["count(*)"])

    def drop(self) -> None:
        with _trouble(self._uri), self._turn:
            self._client.drop_collection(self._name)

    def close(self) -> None:
        """The client belongs to whoever opened it."""

    def _written(self, any: bool) -> None:
        if any and self._lite:
            self._client.flush(self._name)


def _expression(where: Where | None) -> str | None:
    """`where` as Milvus' filter; None where nothing can match. Values are hex digits, our own
    words or ids of plain characters: milvus-lite takes no values apart from the text."""
    where = where or Where()
    parts = []
    if where.scopes is not None:
        parts.append(_among("place", [place(scope, i) for scope, i in where.scopes]))
    if where.statuses is not None:
        parts.append(_among("status", [status.value for status in where.statuses]))
    if where.ids is not None:
        parts.append(_among("id", where.ids))
    if "" in parts:
        return None
    return " and ".join(parts)


def _among(field: str, values: Sequence[str]) -> str:
    """`field in [...]`; empty where nothing is left. An id of other characters is unknown."""
    plain = [value for value in values if re.fullmatch(r"[\w-]{1,64}", value, re.ASCII)]
    return f"{field} in {json.dumps(plain)}" if plain else ""


@contextmanager
def _trouble(uri: str) -> Iterator[None]:
    from pymilvus.exceptions import MilvusException

    try:
        yield
    except MilvusException as error:
        raise StoreError(
            f"Milvus at {uri} failed: {shorten(error.message, 200)}",
            hint="Check that it runs and that its address is right; then repair on the Admin page.",
        ) from error
