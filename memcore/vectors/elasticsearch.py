"""Elasticsearch 8 or newer: `dense_vector` with kNN search (extra `elasticsearch`).

One index per collection. Vectors are indexed as floats: the default (8 bits) would miss the
promised 1e-4. The filter is part of the kNN search, so it comes before the limit. A search's
`_score` is (1 + cosine) / 2. Not run against a real cluster here; docs/deployment.md says what was.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from memcore.embeddings import Vectors
from memcore.errors import MissingExtra, StoreError
from memcore.secrets import Secret
from memcore.text import shorten
from memcore.vectors import Match, Record, Where, checked, nearest_first, place

# Elasticsearch's own limits: candidates of one kNN search, dimensions of one vector.
_MOST = 10_000
_MOST_DIMENSIONS = 4096
_PAGE = 500
_SPARE = 32


def connect(url: str, api_key: Secret | None = None, *, timeout: float = 10.0) -> Any:
    """A client that several stores and threads share. Raises MissingExtra, StoreError."""
    try:
        from elasticsearch import Elasticsearch
    except ImportError:
        raise MissingExtra("elasticsearch", "elasticsearch") from None
    try:
        return Elasticsearch(
            url,
            api_key=api_key.reveal() if api_key else None,
            request_timeout=timeout,
            retry_on_timeout=True,
            max_retries=2,
        )
    except ValueError as error:
        raise StoreError(
            f"{url!r} is not an Elasticsearch address.",
            hint="Write it like https://search.example:9200.",
        ) from error


class ElasticsearchStore:
    """One index. The client stays its owner's: `close` leaves it open."""

    def __init__(self, client: Any, name: str, dimensions: int) -> None:
        if dimensions > _MOST_DIMENSIONS:
            raise StoreError(
                f"Elasticsearch takes vectors of up to {_MOST_DIMENSIONS} dimensions; the "
                f"library's have {dimensions}.",
                hint="Choose another vector store or embedder.",
            )
        self._client = client
        self._name = name.lower()
        self._dimensions = dimensions
        with _trouble():
            self._open()

    def _open(self) -> None:
        indices = self._client.indices
        if not indices.exists(index=self._name):
            keyword = {"type": "keyword"}
            indices.create(
                index=self._name,
                mappings={
                    "dynamic": "strict",
                    "properties": {
                        "id": keyword,
                        "vector": {
                            "type": "dense_vector",
                            "dims": self._dimensions,
                            "index": True,
                            "similarity": "cosine",
                            "index_options": {"type": "hnsw", "m": 16, "ef_construction": 200},
                        },
                        "place": keyword,
                        "status": keyword,
                        "content_hash": keyword,
                    },
                },
            )
            return
        mapping = indices.get_mapping(index=self._name)
        dims = mapping[self._name]["mappings"]["properties"]["vector"]["dims"]
        if dims != self._dimensions:
            raise StoreError(
                f"The Elasticsearch index {self._name} holds {dims} dimensions, "
                f"not {self._dimensions}.",
                hint="Re-embed the library; it builds a new index.",
            )

    def upsert(self, records: Sequence[Record]) -> None:
        documents = [
            {
                "id": record.id,
                "vector": checked(record.vector, self._dimensions)[0].tolist(),
                "place": place(record.scope, record.scope_id),
                "status": record.status.value,
                "content_hash": record.content_hash,
            }
            for record in records
        ]
        for start in range(0, len(documents), _PAGE):
            operations: list[Any] = []
            for document in documents[start : start + _PAGE]:
                operations += [{"index": {"_id": document["id"]}}, document]
            self._bulk(operations)

    def query(self, vector: Vectors, k: int, where: Where | None = None) -> list[Match]:
        asked = checked(vector, self._dimensions)[0]
        filter = _filter(where)
        if k < 1 or filter is None:
            return []
        wanted = min(k + _SPARE, _MOST)
        with _trouble():
            found = self._client.search(
                index=self._name,
                knn={
                    "field": "vector",
                    "query_vector": asked.tolist(),
                    "k": wanted,
                    "num_candidates": min(max(2 * wanted, 200), _MOST),
                    "filter": filter,
                },
                size=wanted,
                source=False,
            )
        return nearest_first(
            (Match(hit["_id"], 2 * float(hit["_score"]) - 1) for hit in found["hits"]["hits"]), k
        )

    def fetch(self, ids: Sequence[str]) -> dict[str, Vectors]:
        out: dict[str, Vectors] = {}
        with _trouble():
            for start in range(0, len(ids), _PAGE):
                found = self._client.mget(index=self._name, ids=list(ids[start : start + _PAGE]))
                for document in found["docs"]:
                    if document.get("found"):
                        vector = document["_source"]["vector"]
                        out[document["_id"]] = np.asarray(vector, dtype=np.float32)
        return out

    def delete(self, ids: Sequence[str]) -> None:
        for start in range(0, len(ids), _PAGE):
            self._bulk([{"delete": {"_id": i}} for i in ids[start : start + _PAGE]])

    def ids(self) -> set[str]:
        found: set[str] = set()
        after: list[Any] | None = None
        with _trouble():
            while True:
                page = self._client.search(
                    index=self._name, query={"match_all": {}}, size=_PAGE, source=False,
                    sort=[{"id": "asc"}], **({"search_after": after} if after else {}),
                )["hits"]["hits"]  # fmt: skip
                if not page:
                    return found
                found |= {hit["_id"] for hit in page}
                after = page[-1]["sort"]

    def count(self, where: Where | None = None) -> int:
        filter = _filter(where)
        if filter is None:
            return 0
        with _trouble():
            answer = self._client.count(index=self._name, query={"bool": {"filter": filter}})
        return int(answer["count"])

    def drop(self) -> None:
        with _trouble():
            self._client.indices.delete(index=self._name, ignore_unavailable=True)

    def close(self) -> None:
        """The client belongs to whoever opened it."""

    def _bulk(self, operations: list[Any]) -> None:
        if not operations:
            return
        with _trouble():
            # A refresh makes what was written visible to the next search.
            answer = self._client.bulk(index=self._name, operations=operations, refresh=True)
        failed = [
            outcome
            for item in answer["items"]
            for outcome in item.values()
            if outcome["status"] >= 300 and outcome["status"] != 404
        ]
        if failed:
            reason = failed[0].get("error", {})
            reason = reason.get("reason", "") if isinstance(reason, dict) else str(reason)
            raise StoreError(
                f"Elasticsearch refused {len(failed)} of {len(answer['items'])} vectors: "
                f"{shorten(reason, 160)}",
                hint="Look at the index on the Admin page; then repair the library.",
            )


def _filter(where: Where | None) -> list[dict[str, Any]] | None:
    """`where` as clauses that must all hold; None where nothing can match."""
    where = where or Where()
    clauses = []
    if where.scopes is not None:
        clauses.append({"terms": {"place": [place(scope, i) for scope, i in where.scopes]}})
    if where.statuses is not None:
        clauses.append({"terms": {"status": [status.value for status in where.statuses]}})
    if where.ids is not None:
        clauses.append({"terms": {"id": list(where.ids)}})
    if any(not next(iter(clause["terms"].values())) for clause in clauses):
        return None
    return clauses


@contextmanager
def _trouble() -> Iterator[None]:
    from elasticsearch import ApiError, TransportError

    try:
        yield
    except ApiError as error:
        raise StoreError(
            f"Elasticsearch refused the request ({error.status_code}): "
            f"{shorten(str(error.message), 160)}",
            hint="Check the index and the API key's rights on the Admin page.",
        ) from error
    except TransportError as error:
        raise StoreError(
            f"Elasticsearch cannot be reached: {shorten(str(error.message), 160)}",
            hint="Check that it runs and that its address is right.",
        ) from error
