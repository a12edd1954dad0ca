"""Embeddings from an OpenAI-compatible endpoint.

A reply is used whole or not at all: as many vectors as texts, in the order of their index, each
of the collection's length, finite and not zero. Floats are asked for explicitly, since base64 is
read at a quarter of its length by some servers' clients. `dimensions` is sent only to models that
are known to take it, or where the endpoint's options say so.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from memcore.embeddings import Calibration, Vectors
from memcore.endpoints.client import Client
from memcore.errors import EndpointRefused, EndpointReply

DEFAULT_MODEL = "text-embedding-3-small"
DEFAULT_DIMENSIONS = 1536

_BATCH = 64
_BATCH_CHARACTERS = 100_000

# Not measured here: the seed's values for text-embedding-3-small. The page says so and offers
# similar pairs around the threshold.
_CALIBRATION = Calibration(
    duplicate_threshold=0.85, similarity_threshold=0.65, dense_weight=0.5, lexical=True
)


class EndpointEmbedder:
    """`name` stands for model and dimensions: the endpoints service lets neither change while a
    library uses them. `dimensions` None: learnt from the first reply. `budget`: seconds for one
    batch with its retries."""

    calibration = _CALIBRATION

    def __init__(
        self,
        name: str,
        client: Client,
        model: str,
        dimensions: int | None,
        *,
        send_dimensions: bool | None = None,
        budget: float | None = None,
    ) -> None:
        self.name = name
        self._client = client
        self._model = model
        self._dimensions = dimensions
        if send_dimensions is None:
            send_dimensions = model.rpartition("/")[2].startswith("text-embedding-3")
        self._send_dimensions = send_dimensions
        self._budget = budget
        self._probing = threading.Lock()

    def __repr__(self) -> str:
        return f"<embedder {self.name}: {self._model} at {self._client!r}>"

    @property
    def dimensions(self) -> int:
        with self._probing:
            if self._dimensions is None:
                self._dimensions = self._request(["dimensions"]).shape[1]
            return self._dimensions

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        out = np.empty((len(texts), self.dimensions), dtype=np.float32)
        start = 0
        while start < len(texts):
            end, size = start, 0
            while end < len(texts) and end - start < _BATCH:
                size += len(texts[end])
                if size > _BATCH_CHARACTERS and end > start:
                    break
                end += 1
            out[start:end] = self._request(texts[start:end])
            start = end
        return out

    def embed_query(self, text: str) -> Vectors:
        row: Vectors = self.embed_documents([text])[0]
        return row

    def close(self) -> None:
        self._client.close()

    def _request(self, texts: Sequence[str]) -> Vectors:
        # An empty text is refused by most servers, and a lone surrogate is not JSON.
        sent = [t.encode("utf-8", "replace").decode() or " " for t in texts]
        extra: dict[str, Any] = {}
        if self._send_dimensions and self._dimensions is not None:
            extra["dimensions"] = self._dimensions
        try:
            reply = self._ask(sent, extra)
        except EndpointRefused as error:
            if not extra or "dimension" not in error.message.lower():
                raise
            # The model takes no such parameter; its own length is checked below all the same.
            reply = self._ask(sent, {})
            self._send_dimensions = False
        return self._checked(reply, len(texts))

    def _ask(self, sent: list[str], extra: dict[str, Any]) -> Any:
        return self._client.ask(
            lambda client: client.embeddings.create(
                input=sent, model=self._model, encoding_format="float", **extra
            ),
            budget=self._budget,
        )

    def _checked(self, reply: Any, expected: int) -> Vectors:
        where = self._client.url
        items = getattr(reply, "data", None)
        if not isinstance(items, list):
            raise EndpointReply(
                f"{where} answered something that is not an embedding list.",
                hint="Check the base URL: it should end where /embeddings begins.",
            )
        if len(items) != expected:
            raise EndpointReply(
                f"{where} sent {len(items)} vectors for {expected} texts; none of them was used."
            )
        indexes = [getattr(item, "index", None) for item in items]
        if any(index is not None for index in indexes):
            if sorted(i if isinstance(i, int) else -1 for i in indexes) != list(range(expected)):
                raise EndpointReply(f"{where} numbered its vectors wrongly; none of them was used.")
            items = sorted(items, key=lambda item: int(item.index))
        rows = [getattr(item, "embedding", None) for item in items]
        if any(isinstance(row, str) for row in rows):
            raise EndpointReply(
                f"{where} sent vectors as text although numbers were asked for.",
                hint="The server must support encoding_format=float.",
            )
        wanted = self._dimensions
        for row in rows:
            length = len(row) if isinstance(row, list) else 0
            wanted = wanted or length
            if not length or length != wanted:
                raise EndpointReply(
                    f"{where} sent a vector of {length} dimensions, but {self._model} was set up "
                    f"with {wanted}.",
                    hint=f"Set the endpoint up with {length} dimensions and re-embed the library.",
                )
        try:
            out = np.asarray(rows, dtype=np.float32)
        except (TypeError, ValueError, OverflowError):
            out = np.full((expected, 1), np.nan, dtype=np.float32)
        if not np.isfinite(out).all() or not float(np.linalg.norm(out, axis=1).min()) >= 1e-6:
            raise EndpointReply(
                f"{where} sent a vector that is zero or not made of finite numbers; "
                "none of the batch was used."
            )
        return out
