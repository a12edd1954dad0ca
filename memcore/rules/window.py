"""Short-term memory: which messages an agent still sees, which are summarised, when to extract.

Pure: no I/O. The rules:

- A window holds at most `size` messages, the newest. A tool call and its results are one group:
  they stay together or leave together. Only a last group larger than `size` exceeds it.
- A result whose call is not there, and system text, are never in a window.
- What left the window and is not yet in the running summary is what the summary takes up next.
- Extraction is due after `interval` user messages since the last run, from those messages, with
  some earlier ones as context that yields no memories.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memcore.models import Message
from memcore.rules.tokens import PER_MESSAGE, estimate_tokens

DEFAULT_SIZE = 20


@dataclass(frozen=True, slots=True)
class Window:
    kept: tuple[Message, ...]
    """Oldest first."""
    left: tuple[Message, ...]
    """No longer seen; oldest first."""
    tokens: int
    """Estimated, of `kept`."""

    @property
    def kept_ids(self) -> frozenset[str]:
        return frozenset(m.id for m in self.kept)


@dataclass(frozen=True, slots=True)
class Batch:
    """What one extraction reads."""

    context: tuple[Message, ...]
    """Earlier messages, to understand the new ones by; not a source."""
    new: tuple[Message, ...]
    turns: int
    """User messages in `new`."""
    due: bool
    """True: `turns` has reached the interval."""


def message_tokens(message: Message) -> int:
    """Estimated tokens of one message, its tool calls included."""
    calls = sum(estimate_tokens(c.name) + estimate_tokens(c.arguments) for c in message.tool_calls)
    return estimate_tokens(message.content) + calls + PER_MESSAGE


def groups(messages: Sequence[Message]) -> list[tuple[Message, ...]]:
    """`messages` in order, a tool call together with everything up to its last result."""
    out: list[list[Message]] = []
    waiting: dict[str, int] = {}
    for message in messages:
        at = waiting.get(message.tool_call_id or "") if message.role == "tool" else None
        if at is not None:
            # What was said between call and result belongs to the same group.
            for later in out[at + 1 :]:
                out[at] += later
            del out[at + 1 :]
            out[at].append(message)
            waiting = {k: min(v, at) for k, v in waiting.items()}
        else:
            out.append([message])
        waiting |= {c.id: len(out) - 1 for c in message.tool_calls}
    return [tuple(g) for g in out]


def window(messages: Sequence[Message], size: int = DEFAULT_SIZE) -> Window:
    """The newest messages an agent sees. `size` below 1 means 20."""
    size = size if size >= 1 else DEFAULT_SIZE
    kept: list[tuple[Message, ...]] = []
    count = 0
    for group in reversed(groups([m for m in messages if m.role != "system"])):
        if _orphan(group):
            continue
        if kept and count + len(group) > size:
            break
        kept.append(group)
        count += len(group)
        if count >= size:
            break
    inside = tuple(m for group in reversed(kept) for m in group)
    ids = {id(m) for m in inside}
    left = tuple(m for m in messages if id(m) not in ids and m.role != "system")
    return Window(inside, left, sum(message_tokens(m) for m in inside))


def _orphan(group: Sequence[Message]) -> bool:
    return group[0].role == "tool"


def to_summarise(view: Window, summarised_until: str | None) -> tuple[Message, ...]:
    """Messages that left the window after message `summarised_until`; all that left when None or
    no longer there."""
    ids = [m.id for m in view.left]
    start = ids.index(summarised_until) + 1 if summarised_until in ids else 0
    return view.left[start:]


def batch(
    messages: Sequence[Message],
    extracted_until: str | None,
    interval: int,
    *,
    context: int = 6,
) -> Batch:
    """The messages after `extracted_until` (None: from the start) and up to `context` before them.

    Starts of both parts never split a tool call from its result.
    """
    spoken = [m for m in messages if m.role != "system"]
    ids = [m.id for m in spoken]
    start = ids.index(extracted_until) + 1 if extracted_until in ids else 0
    new = tuple(spoken[start:])
    before = window(spoken[:start], context).kept if start and context > 0 else ()
    turns = sum(m.role == "user" for m in new)
    return Batch(before, new, turns, due=turns >= interval)
