"""The extractor that asks a chat model over OpenAI's interface.

Three ways to ask for structure, and the run says which was used: `tools` (a forced function call),
`json` (a schema as response format), `plain` (the prompt alone). `auto` begins with `json` and goes
down where an endpoint refuses; what worked is remembered. The reply is read by `reply`, whichever
way it came.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from memcore.endpoints.client import Client
from memcore.errors import EndpointRefused, EndpointReply
from memcore.extraction import Extraction, Known, Outcome, Proposal
from memcore.extraction.prompt import SCHEMA, TOOL, Asked, ask
from memcore.extraction.reply import read_reply
from memcore.models import Message

if TYPE_CHECKING:
    import openai

Mode = Literal["auto", "tools", "json", "plain"]

MAX_TOKENS = 2_000
_DOWN = ("json", "tools", "plain")


class LLMExtractor:
    """`custom` replaces the built-in prompt; `max_tokens` bounds the reply."""

    def __init__(
        self,
        client: Client,
        model: str,
        *,
        mode: Mode = "auto",
        custom: str = "",
        max_tokens: int = MAX_TOKENS,
        budget: float = 90.0,
    ) -> None:
        self._client = client
        self._model = model
        self._modes: tuple[str, ...] = _DOWN if mode == "auto" else (mode,)
        self._custom = custom
        self._max_tokens = max_tokens
        self._budget = budget

    @property
    def name(self) -> str:
        return f"llm:{self._model}"

    def extract(
        self,
        new: Sequence[Message],
        *,
        context: Sequence[Message] = (),
        known: Sequence[Known] = (),
        limit: int = 5,
    ) -> Extraction:
        """Proposals of the model. Raises EndpointError and its kinds when it cannot be asked; what
        it answers never raises."""
        asked = ask(new, context=context, known=known, limit=limit, custom=self._custom)
        if not asked.turns:
            return Extraction(Outcome.NOTHING, "Nobody said anything in these messages.")
        mode, message, finish_reason, tokens = self._complete(asked)
        read = read_reply(
            message,
            finish_reason=finish_reason,
            conversation=(*context, *new),
            known=asked.known,
            limit=limit,
            max_tokens=self._max_tokens,
            turns=asked.turns,
            new=frozenset(m.id for m in new),
        )
        return replace(
            read,
            proposals=_own_ids(read.proposals, asked),
            held=_own_ids(read.held, asked),
            mode=mode,
            tokens=tokens,
        )

    def _complete(self, asked: Asked) -> tuple[str, dict[str, Any], str | None, int]:
        for place, mode in enumerate(self._modes):
            call = partial(self._call, asked=asked, mode=mode)
            try:
                found = self._client.ask(call, budget=self._budget)
            except EndpointRefused:
                # A server without this way of asking says so with a 400. A wrong key or model is
                # refused in every mode, and the last refusal is the one to show.
                if place == len(self._modes) - 1:
                    raise
                continue
            self._modes = self._modes[place:]
            return mode, *found
        raise AssertionError("unreachable")

    def _call(
        self, client: openai.OpenAI, *, asked: Asked, mode: str
    ) -> tuple[dict[str, Any], str | None, int]:
        options: dict[str, Any] = {}
        if mode == "tools":
            function = {"name": TOOL, "description": "Keep memories.", "parameters": SCHEMA}
            options["tools"] = [{"type": "function", "function": function}]
            options["tool_choice"] = {"type": "function", "function": {"name": TOOL}}
        elif mode == "json":
            schema = {"name": TOOL, "strict": True, "schema": SCHEMA}
            options["response_format"] = {"type": "json_schema", "json_schema": schema}
        answer = client.chat.completions.create(
            model=self._model,
            messages=[
                {"role": "system", "content": asked.system},
                {"role": "user", "content": asked.user},
            ],
            max_tokens=self._max_tokens,
            temperature=0,
            **options,
        )
        if not answer.choices:
            raise EndpointReply("The endpoint answered without a choice.")
        choice = answer.choices[0]
        used = answer.usage.total_tokens if answer.usage else 0
        return choice.message.model_dump(), choice.finish_reason, used


def _own_ids(proposals: Sequence[Proposal], asked: Asked) -> tuple[Proposal, ...]:
    """`proposals` about the memories themselves, not the numbers the model was shown."""
    return tuple(
        replace(p, target_id=asked.own_ids.get(p.target_id)) if p.target_id else p
        for p in proposals
    )
