"""Extractors: a conversation → proposals. The protocol here, the adapters beside it.

A proposal is a draft and why: the turn it came from, what was changed to read it, what speaks
against taking it unseen. An extraction accounts for everything the source offered:
extracted = kept + held + skipped + collapsed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from memcore.models import Draft, Message


class Outcome(StrEnum):
    """How a run ended. The last three are failures: an empty result is never one of them."""

    OK = "ok"
    NOTHING = "nothing"
    """The extractor looked and found nothing worth keeping."""
    DEGRADED = "degraded"
    """Readable only in part, or only after repair."""
    REFUSED = "refused"
    TRUNCATED = "truncated"
    UNPARSABLE = "unparsable"


FAILURES = frozenset({Outcome.REFUSED, Outcome.TRUNCATED, Outcome.UNPARSABLE})


class Action(StrEnum):
    ADD = "add"
    UPDATE = "update"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Known:
    """A memory the extractor is shown, so that it need not propose it again."""

    id: str
    content: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """Where a proposal comes from."""

    message_id: str
    role: str
    quote: str
    """The sentence that says it, as it was said."""
    rule: str = ""
    """Name of the offline rule that found it; empty for a model."""


@dataclass(frozen=True, slots=True)
class Flag:
    """Something that speaks against storing a proposal unseen."""

    kind: str
    """instruction_like, ungrounded, assistant_said, translated, subject_changed, negation_changed,
    copied, deliberation, markup, garbled, repetition, confidence_unreadable, quotes_guessed,
    deletion."""
    detail: str


@dataclass(frozen=True, slots=True)
class Proposal:
    draft: Draft
    evidence: Evidence | None = None
    """None: no turn was found that says it."""
    action: Action = Action.ADD
    target_id: str | None = None
    """The known memory an update or deletion is about."""
    flags: tuple[Flag, ...] = ()
    """Not empty: a person looks at it first."""
    notes: tuple[str, ...] = ()
    """What was assumed or converted to read it."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """An item that cannot become a draft, and why."""

    reason: str
    detail: str
    item: str
    """The item as it was sent, shortened."""


@dataclass(frozen=True, slots=True)
class Extraction:
    """Everything one run made of a conversation."""

    outcome: Outcome
    detail: str = ""
    """One sentence for a person; for failures the cause."""
    proposals: tuple[Proposal, ...] = ()
    """Free of flags, best first as the source ordered them."""
    held: tuple[Proposal, ...] = ()
    """Flagged: for review, never stored unseen."""
    skipped: tuple[Skipped, ...] = ()
    collapsed: int = 0
    """Items that said what another item of the same run said."""
    truncated: bool = False
    """The source was cut off; complete items may have been kept."""
    missed: tuple[str, ...] = ()
    """Ids of messages that asked to remember something, of which nothing came."""
    raw: str = ""
    """The reply as it came, for the console; empty for offline rules."""
    read_by: str = ""
    """The layer that could read it: strict, reasoning, fence, found, repaired, tool, rules."""
    mode: str = ""
    """How a model was asked: tools, json or plain; empty for offline rules."""
    tokens: int = 0
    """Prompt and reply together, as the endpoint counted them; 0: it did not say."""

    @property
    def extracted(self) -> int:
        return self.kept + len(self.held) + len(self.skipped) + self.collapsed

    @property
    def kept(self) -> int:
        return len(self.proposals)

    @property
    def failed(self) -> bool:
        return self.outcome in FAILURES

    @property
    def counts(self) -> dict[str, int]:
        return {
            "extracted": self.extracted,
            "kept": self.kept,
            "held": len(self.held),
            "skipped": len(self.skipped),
            "collapsed": self.collapsed,
        }


class Extractor(Protocol):
    """Reads a conversation. Never raises for what the conversation or a model says; an endpoint
    that cannot be reached raises EndpointError."""

    @property
    def name(self) -> str:
        """`rules`, or `llm:<model>`."""
        ...

    def extract(
        self,
        new: Sequence[Message],
        *,
        context: Sequence[Message] = (),
        known: Sequence[Known] = (),
        limit: int = 5,
    ) -> Extraction:
        """Proposals from `new`. `context` came before it and is no source; `known` are memories of
        the scope; at most `limit` proposals are kept."""
        ...
