"""Two optional stages of a recall, off by default: rewriting the query, re-reading candidates.

A library switches each on with its settings `query_rewrite` and `rerank`. Its chat model
(`extraction_model`) serves both through `chat.py`; others are handed to
`open_core(rewriter=…, reranker=…)`. Both may raise EndpointError; a recall then goes on without
them and says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from memcore.models import Message


class QueryRewriter(Protocol):
    def rewrite(self, query: str, conversation: Sequence[Message] = ()) -> str:
        """The query to search with instead; blank keeps the original. `conversation`: what was said
        before it, oldest first, where that is known."""
        ...


class Reranker(Protocol):
    def relevance(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """How well each text answers the query, in [0, 1], absolute, one per text in order. It
        takes the place of similarity for the candidates it read."""
        ...
