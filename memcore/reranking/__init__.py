"""Two optional stages of a recall, off by default: rewriting the query, re-reading candidates.

Protocols only: what serves them is handed to `open_core(rewriter=…, reranker=…)`, and a library
switches each on with its settings `query_rewrite` and `rerank`. Both may raise EndpointError; a
recall then goes on without them and says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class QueryRewriter(Protocol):
    def rewrite(self, query: str) -> str:
        """The query to search with instead; blank keeps the original."""
        ...


class Reranker(Protocol):
    def relevance(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """How well each text answers the query, in [0, 1], absolute, one per text in order. It
        takes the place of similarity for the candidates it read."""
        ...
