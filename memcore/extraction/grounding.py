"""Does a proposal say what the conversation says? Pure: no I/O.

Only what a person or the team said may become a memory. Each check compares one proposal with what
people, the agent and the prompt said, and speaks only when it has a reason to: an honest paraphrase
shares few words with its source, so little overlap alone is none.

| flag | raised when |
|---|---|
| ungrounded | nobody said anything on its topic; or never said a number or name in it |
| assistant_said | the agent said it, and nobody agreed |
| translated | it is in another script than what people wrote |
| subject_changed | the sentence is about somebody it does not mention |
| negation_changed | it agrees with a sentence word for word but for a "not" |
| copied | it is a message as a whole, or carries a speaker's label |

What only system text or injected memories say is an echo, not a proposal.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from memcore.extraction import Evidence, Flag
from memcore.extraction.conversation import RECALL_TOOLS, split_injected
from memcore.extraction.speech import (
    agrees,
    leading_subject,
    mentions_somebody,
    negations,
    numbers_in,
    same_concept,
    script,
    strip_frame,
)
from memcore.models import Message
from memcore.rules.lexical import index_terms, query_terms
from memcore.text import normalise, shorten

COPY_LENGTH = 30
"""From this many characters on, a whole message is no statement but a transcript."""
_CLAUSE = re.compile(r"[^。！？!?；;，,\n]+?(?:[。！？!?；;，,\n]+|\.(?=\s|$)|$)")
_LABEL = re.compile(
    r"^\s*[\[【]?(?:user|human|assistant|ai|用户|助手|我)[\]】]?\s*[:：]", re.IGNORECASE
)
_LATIN = re.compile(r"[A-Za-z][\w.+#/-]*[\w+#]|[A-Za-z]")
_CAPITAL = re.compile(r"(?<=[\w,] )[A-Z][\w.+#-]{2,}")
_RELATIVE = re.compile(
    r"今天|明天|后天|昨天|前天|大后天|今年|明年|去年|上周|下周|本周|这周|周[一二三四五六日天末]|星期"
    r"|上个月|下个月|月底|年底|\b(?:today|tomorrow|yesterday|tonight|next|last|this|ago|monday|tuesday"
    r"|wednesday|thursday|friday|saturday|sunday|week|month|year)\b",
    re.IGNORECASE,
)
_DATE = re.compile(r"\d{4}[-/.年]\d{1,2}(?:[-/.月]\d{1,2}日?)?|\d{1,2}月\d{1,2}[日号]")


@dataclass(frozen=True, slots=True)
class Said:
    """One message as evidence."""

    id: str
    role: str
    text: str
    clauses: tuple[str, ...]
    terms: frozenset[str]


@dataclass(frozen=True, slots=True)
class Heard:
    """A conversation, sorted by who said what."""

    people: tuple[Said, ...]
    assistant: tuple[Said, ...]
    injected: str
    """System text, injected memories and results of recall, as one text."""
    injected_terms: frozenset[str]
    numbers: frozenset[str]
    """Numbers people named, in digits or words."""
    agreements: frozenset[str]
    """Ids of people's messages that say yes to the message before."""
    before: dict[str, str]
    """Id of a person's agreeing message → id of the agent's message it answers."""

    @property
    def empty(self) -> bool:
        return not (self.people or self.assistant or self.injected)


@dataclass(frozen=True, slots=True)
class Grounding:
    evidence: Evidence | None
    flags: tuple[Flag, ...] = ()
    echo: str = ""
    """Not empty: it only repeats system text or a memory; says which."""


def hear(messages: Sequence[Message], known: Sequence[str] = ()) -> Heard:
    """`messages` sorted into what people said, what the agent said and what was put in."""
    people: list[Said] = []
    assistant: list[Said] = []
    injected = list(known)
    recalls = {
        c.id for m in messages for c in m.tool_calls if c.name.rpartition(".")[2] in RECALL_TOOLS
    }
    agreements: dict[str, str] = {}
    last_assistant = ""
    for message in messages:
        if message.role == "system" or message.tool_call_id in recalls:
            injected.append(message.content)
            continue
        text, put_in = split_injected(message.content)
        if put_in:
            injected.append(put_in)
        if not text or message.role == "tool":
            continue
        said = _said(message, text)
        if message.role == "assistant":
            assistant.append(said)
            last_assistant = message.id
        else:
            people.append(said)
            if last_assistant and agrees(text):
                agreements[message.id] = last_assistant
    everything = "\n".join(injected)
    numbers = frozenset(n for s in people for n in numbers_in(s.text, words=True))
    return Heard(
        tuple(people), tuple(assistant), everything, frozenset(index_terms(everything)), numbers,
        frozenset(agreements), agreements,
    )  # fmt: skip


def _said(message: Message, text: str) -> Said:
    clauses = tuple(c.strip() for c in _CLAUSE.findall(text) if c.strip())
    return Said(message.id, message.role, text, clauses, frozenset(index_terms(text)))


def ground(content: str, heard: Heard, pointer: str | None = None) -> Grounding:
    """Where `content` comes from and what speaks against it. `pointer`: the message its author
    named, believed where that message shares a word with it."""
    topic = strip_frame(content)
    terms = frozenset(query_terms(topic)) or frozenset(query_terms(content))
    best, clause, shared = _best(terms, topic, heard, pointer)
    put_in = _covered(terms, heard.injected_terms)
    if (echo := _echo(content, terms, heard, put_in)) and shared < put_in:
        return Grounding(None, echo=echo)
    flags: list[Flag] = []
    translated = _translated(content, heard)
    if translated:
        flags.append(translated)
        best = best or (heard.people[0] if len(heard.people) == 1 else None)
    agreed = _agreed(terms, heard)
    if agreed and (best is None or shared < 0.5):
        said = next(s for s in heard.people if s.id == agreed)
        return Grounding(Evidence(said.id, said.role, said.text), tuple(flags))
    by_agent = max((_covered(terms, s.terms) for s in heard.assistant), default=0.0)
    if by_agent >= 0.5 and shared < by_agent / 2:
        flags.append(Flag("assistant_said", "The agent said this; no person did."))
    elif best is None and not translated:
        flags.append(Flag("ungrounded", "Nothing a person said is about this."))
    elif (strange := _never_said(content, heard)) and not agreed:
        flags.append(strange)
    if best is not None and clause and not translated:
        flags += _against_clause(content, terms, clause)
    flags += _copied(content, heard)
    if best is None:
        return Grounding(None, tuple(flags))
    quote = clause or best.text
    return Grounding(Evidence(best.id, best.role, shorten(quote, 300)), tuple(flags))


def _best(
    terms: frozenset[str], topic: str, heard: Heard, pointer: str | None
) -> tuple[Said | None, str, float]:
    """The person's message that says it best, its closest clause, and the share of `terms` the
    message has. The later of two equals: people correct themselves."""
    found: tuple[float, float, Said | None, str] = (0.0, 0.0, None, "")
    letters = {c for c in topic if "\u3400" <= c <= "\u9fff"}
    for said in heard.people:
        share = _covered(terms, said.terms)
        in_clauses = [
            (_covered(terms, frozenset(index_terms(c))), -len(c), c) for c in said.clauses
        ]
        top, _, clause = max(in_clauses, default=(0.0, 0, ""))
        if not share:
            # One character in common is a hint in Chinese; several make a topic.
            near = max(
                ((len(letters & set(c)) / len(letters), c) for c in said.clauses if letters),
                default=(0.0, ""),
            )
            concept = next((c for c in said.clauses if same_concept(topic, c)), "")
            if concept or near[0] >= 0.25:
                share, clause = 0.01, concept or near[1]
        if share and said.id == pointer:
            return said, clause if top or share == 0.01 else said.text, share
        if share and (share, top) >= found[:2]:
            found = (share, top, said, clause)
    return found[2], found[3], found[0]


def _covered(terms: frozenset[str], of: frozenset[str]) -> float:
    return len(terms & of) / len(terms) if terms else 0.0


def _echo(content: str, terms: frozenset[str], heard: Heard, put_in: float) -> str:
    """Which text it repeats that nobody said; empty when it does not."""
    if not heard.injected:
        return ""
    exact = normalise(content)
    if exact in normalise(heard.injected) and not any(
        exact in normalise(s.text) for s in heard.people
    ):
        return "It repeats system text or an injected memory."
    people = max((_covered(terms, s.terms) for s in heard.people), default=0.0)
    if put_in >= 0.5 and people < put_in / 2:
        return "Only system text or injected memories say this."
    return ""


def _translated(content: str, heard: Heard) -> Flag | None:
    theirs = script("\n".join(s.text for s in heard.people))
    own = script(content)
    if theirs and own and theirs != own:
        return Flag("translated", f"People wrote {theirs} script, this is {own}.")
    return None


def _agreed(terms: frozenset[str], heard: Heard) -> str:
    """Id of the person's message that agreed to what the agent had said, if that is it."""
    for mine, theirs in heard.before.items():
        answered = next((s for s in heard.assistant if s.id == theirs), None)
        if answered and _covered(terms, answered.terms) >= 0.5:
            return mine
    return ""


def _never_said(content: str, heard: Heard) -> Flag | None:
    """A flag for numbers and names in it that no person said."""
    theirs = "\n".join(s.text for s in heard.people)
    agents = "\n".join(s.text for s in heard.assistant)
    if _RELATIVE.search(theirs):
        # "tomorrow" may rightly have become a date.
        content = _DATE.sub("", content)
    strange = [n for n in numbers_in(content) if n not in heard.numbers]
    names = _LATIN.findall(content) if script(content) != "Latin" else _CAPITAL.findall(content)
    strange += [n for n in names if not _spelled(n, theirs)]
    if not strange:
        return None
    agents_numbers = frozenset(numbers_in(agents, words=True))
    shown = ", ".join(strange[:3])
    if all(n in agents_numbers or (n in names and _spelled(n, agents)) for n in strange):
        return Flag("assistant_said", f"Only the agent said this: {shown}.")
    return Flag("ungrounded", f"Never said in the conversation: {shown}.")


def _spelled(name: str, text: str) -> bool:
    """Does `text` have `name`, however it is spaced, hyphenated or put into the plural?"""
    bare, folded = (re.sub(r"[\s_-]", "", t.casefold()) for t in (name, text))
    return len(bare) < 2 or bare in folded or bare.rstrip("s") in folded


def _against_clause(content: str, terms: frozenset[str], clause: str) -> list[Flag]:
    flags = []
    subject = leading_subject(clause)
    if subject and subject.casefold() not in content.casefold() and not mentions_somebody(content):
        flags.append(
            Flag("subject_changed", f"The sentence is about {subject!r}, who is not mentioned.")
        )
    close = _covered(terms, frozenset(index_terms(clause))) >= 0.6
    if close and (negations(content) % 2) != (negations(clause) % 2):
        flags.append(Flag("negation_changed", "It differs from what was said by a negation."))
    return flags


def _copied(content: str, heard: Heard) -> list[Flag]:
    if _LABEL.match(content):
        return [Flag("copied", "It carries a speaker's label: a transcript, not a statement.")]
    own = normalise(content)
    if len(own) >= COPY_LENGTH and any(
        own == normalise(s.text) and len(s.clauses) > 2 for s in (*heard.people, *heard.assistant)
    ):
        return [Flag("copied", "It is a whole message, word for word.")]
    return []
