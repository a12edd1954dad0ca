"""One question to a chat model over OpenAI's interface, and the text it answers.

For small tasks whose answer is short: it must be whole, thoughts are taken off, and where a schema
is given the endpoint is asked to keep to it, or asked again without one where it knows none.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memcore.errors import EndpointRefused, EndpointReply
from memcore.rules.injection import encode
from memcore.text import clean

if TYPE_CHECKING:
    from memcore.endpoints.client import Client

_THOUGHTS = re.compile(r"<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_ANSWER = re.compile(r"<\|channel\|>final<\|message\|>(.*?)(?:<\|\w+\|>|\Z)", re.DOTALL)


def fenced(rows: Sequence[Mapping[str, Any]], tag: str) -> str:
    """`rows` as data for a prompt: a JSON object a line between tags that no content can write,
    since they carry a random number and `<`, `>` and `&` are escaped inside."""
    nonce = secrets.token_hex(8)
    lines = "\n".join(encode(row) for row in rows)
    return f"<{tag}-{nonce}>\n{lines}\n</{tag}-{nonce}>"


def answer(
    client: Client,
    model: str,
    system: str,
    user: str,
    *,
    max_tokens: int,
    seconds: float,
    schema: Mapping[str, Any] | None = None,
) -> str:
    """The model's answer, cleaned and without its thoughts. Raises EndpointError and its kinds;
    EndpointReply where the answer is blank or was cut off."""
    if schema is not None:
        form = {"name": "answer", "strict": True, "schema": dict(schema)}
        options: dict[str, Any] = {"response_format": {"type": "json_schema", "json_schema": form}}
        try:
            return _answer(client, model, system, user, max_tokens, seconds, options)
        except EndpointRefused:
            # A server that knows no schemas says so with a 400. A wrong key or model is refused
            # again below, and that refusal is the one to show.
            pass
    return _answer(client, model, system, user, max_tokens, seconds, {})


def _answer(
    client: Client,
    model: str,
    system: str,
    user: str,
    max_tokens: int,
    seconds: float,
    options: Mapping[str, Any],
) -> str:
    made = client.ask(
        lambda c: c.chat.completions.create(
            model=model,
            messages=[{"role": "system", "content": system}, {"role": "user", "content": user}],
            max_tokens=max_tokens,
            temperature=0,
            **options,
        ),
        budget=seconds,
    )
    choice = made.choices[0] if made.choices else None
    text = choice.message.content or "" if choice else ""
    if said := _ANSWER.findall(text):
        text = said[-1]
    text = clean(_THOUGHTS.sub("", text)).strip()
    if choice is None or not text:
        raise EndpointReply("The model gave no answer.")
    if choice.finish_reason == "length":
        raise EndpointReply(f"The model's answer was cut off after {max_tokens} tokens.")
    return text
