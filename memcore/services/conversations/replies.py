"""Who answers in the playground: a chat model, or a script that shows what was recalled."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Protocol, cast

from memcore.endpoints.client import Client
from memcore.errors import EndpointReply
from memcore.extraction.reply import without_reasoning
from memcore.models import Hit
from memcore.services.conversations.working import WorkingMemory

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletionMessageParam

    from memcore.services.conversations.context import Context

SHOWN = 3


class Replier(Protocol):
    @property
    def name(self) -> str: ...

    def reply(self, context: Context, mind: WorkingMemory) -> str:
        """The agent's words for `context`. Raises EndpointError."""
        ...


class ScriptedReplier:
    """Offline. Says which memories it would answer from, or that it has none: recall in plain
    sight, the same for the same context."""

    name = "scripted"

    def reply(self, context: Context, mind: WorkingMemory) -> str:
        asked = context.messages[-1].content
        chinese = bool(re.search("[\u3400-\u9fff]", asked))
        question = bool(re.search(r"[?？]|吗|呢|什么|怎么|哪|谁|多少|\b(?:what|which|who|how|where|when|why|do|can)\b", asked, re.IGNORECASE))  # fmt: skip  # noqa: E501
        near = [hit for hit in (context.recall.hits if context.recall else ()) if _near(hit)]
        injected = set(context.block.included)
        used = [hit.memory for hit in near if hit.memory.id in injected][:SHOWN]
        mind.think(
            f"{len(near)} of the recalled memories are about this; {len(used)} are in the prompt."
        )
        if used:
            told = "\n".join(f"- {m.content}" for m in used)
            return f"我记得：\n{told}" if chinese else f"I remember:\n{told}"
        if question:
            return (
                "这个我还不知道，你可以告诉我。" if chinese else "I don't know that yet. Tell me?"
            )
        return "好的，我在听。" if chinese else "All right, I'm listening."


def _near(hit: Hit) -> bool:
    """Is a hit about the message, and not merely the best of what there is?"""
    similarity = next((t.value for t in hit.terms if t.name == "similarity"), 0.0)
    return similarity >= 0.3


class ChatReplier:
    """A chat model on an OpenAI-compatible endpoint."""

    def __init__(self, client: Client, model: str, *, max_tokens: int = 1_000) -> None:
        self._client = client
        self._model = model
        self._max_tokens = max_tokens

    @property
    def name(self) -> str:
        return self._model

    def reply(self, context: Context, mind: WorkingMemory) -> str:
        # Calls and results of an earlier turn need their own form; what was said is enough here.
        said: list[dict[str, Any]] = [
            {"role": m.role, "content": m.content}
            for m in context.messages
            if m.role != "tool" and m.content
        ]
        answer = self._client.ask(
            lambda c: c.chat.completions.create(
                model=self._model,
                messages=cast("list[ChatCompletionMessageParam]", said),
                max_tokens=self._max_tokens,
            ),
            budget=90.0,
        )
        choice = answer.choices[0] if answer.choices else None
        text, reasoned = without_reasoning((choice.message.content or "") if choice else "")
        if reasoned:
            mind.think("The model reasoned before it answered; its reasoning is not kept.")
        if choice is None or not text.strip():
            reason = choice.finish_reason if choice else "no choice"
            raise EndpointReply(f"The model answered nothing (finish_reason {reason}).")
        return text.strip()
