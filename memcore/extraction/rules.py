# ruff: noqa: E501
"""The offline extractor: rules in Chinese and English, no model, no network. Pure: no I/O.

Reads what people said, sentence by sentence and clause by clause. Questions, suppositions, quoted
text, code and what memory put in are not read. A clause that a rule knows becomes a statement about
its speaker, in their own words and language; the rule's name is the evidence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from memcore.extraction import Evidence, Extraction, Known, Outcome, Proposal, Skipped, plain
from memcore.extraction.conversation import split_injected
from memcore.extraction.items import collapse, doubts, missed
from memcore.extraction.retell import has_subject, third_person, with_subject
from memcore.extraction.rulebook import (
    HEDGE,
    QUESTION,
    REMEMBER,
    REMEMBER_AFTER,
    REPORTED,
    RETRACTED,
    RULES,
    SPEECH,
    SUPPOSED,
    TASK,
    TEAM,
    THIS_TIME,
    Rule,
)
from memcore.extraction.speech import leading_subject, mentions_somebody
from memcore.models import Draft, MemoryType, Message, Scope
from memcore.rules.lexical import index_terms
from memcore.rules.summary import sentences
from memcore.text import shorten

HEDGED = 0.25
"""Taken off the confidence of what somebody was unsure of."""
SHORTEST = 3
LONGEST = 240

_CODE = re.compile(r"```.*?(?:```|\Z)|^[ \t]*>[^\n]*$", re.DOTALL | re.MULTILINE)
_LOG = re.compile(
    r"^[ \t]*(?:\[?\d{4}-\d\d-\d\d[ T]\d\d:\d\d|\[?(?:ERROR|WARN(?:ING)?|INFO|DEBUG|FATAL)\b|Traceback |File \""
    r"|at [\w.$<>]+\(|[$#] \w|>>> |\w*(?:Error|Exception):|(?:import|from|def|class|const|let|var|return|SELECT|INSERT|UPDATE) \S+[^\n]*[;:(){}=*]).*$",
    re.MULTILINE,
)
_CLAUSES = re.compile(
    r"[，,；;](?=\s|[\u3400-\u9fffA-Za-z])|(?<=[\u4e00-\u9fff])[ 　]+(?=[\u4e00-\u9fff])"
)
_CLAUSES_EN = re.compile(
    r"; | (?:and|but|so) (?=(?:i|we)\b)|, (?=(?:and |but |so )?(?:i|we|my|our|the|please|from now)\b)|\. ",
    re.IGNORECASE,
)
_ANNOUNCED = re.compile(r"(?:定了|决定了?|定下来了?|敲定了?|商定)$")
_NAMES = re.compile(
    r"(?<![\w/.])[A-Z][A-Za-z0-9+#.]{1,20}(?![\w/])|(?<![\w])[A-Za-z]{2,}[0-9]+(?![\w])"
)
_CALENDAR = frozenset(
    "jan feb mar apr may jun jul aug sep oct nov dec mon tue wed thu fri sat sun".split()
)
_LAUGH = re.compile(
    r"(?:[,，.。 ~～]{0,3}(?:\b(?:lol|lmao|haha+|hehe|btw|tbh|by the way)\b|哈{2,}|嘿{2,}|嘻{2,}|[\U0001f300-\U0001faff\u2600-\u27bf\ufe0f]))+[.!。！~～ ]*$",
    re.IGNORECASE,
)
_CONTRACTED = re.compile(
    r"\b(i)(m|ve)\b(?! ?[.:/])|\b((?:do|does|did|ca|wo|is|are)n)(t)\b", re.IGNORECASE
)
_LEAD = re.compile(
    r"^(?:(?:嗯+|哦+|啊|那个|对了|另外|还有|然后|而且|不过|但是?|所以|因为|其实|实际上|顺便(?:说一下|说)?|说起来|我?(?:更正|纠正|补充)一下|好的?|是的|可以|行|当然(?:可以|啦)?|(?:你好|您好|嗨|哈喽|早上好|下午好|晚上好)[^，,。]{0,6})[啊呀哦了]?[，,：:！! ]+)+"
    r"|^[哦嗯啊呃噢诶](?=我)|^(?:对了|另外|而且|不过|但是?|所以|因为|其实|然后)(?=[\u3400-\u9fff]{3})"
    r"|^(?:(?:ok(?:ay)?|alright|yes|yeah|yep|no|nope|well|oh|wow|haha|sure|right|great|cool|nice|thanks|thank you|by the way|correction|of course|actually|btw|definitely|absolutely|(?:hi|hello|hey|good (?:morning|afternoon|evening))(?: \w+){0,2})[,:.!]+ ?|(?:so|also|and|but|actually|btw|plus) )+",
    re.IGNORECASE,
)
_VOCATIVE = re.compile(
    r"^(?:(?:[Yy]eah|[Yy]ep|[Hh]ey|[Hh]i|[Oo]h|[Ww]oah?) )?[A-Z][a-z]+[,!] (?=\w)|, (?-i:[A-Z][a-z]+)[.!]*$"
)


class RulesExtractor:
    """See the module. Stateless."""

    @property
    def name(self) -> str:
        return "rules"

    def extract(
        self,
        new: Sequence[Message],
        *,
        context: Sequence[Message] = (),
        known: Sequence[Known] = (),
        limit: int = 5,
    ) -> Extraction:
        """Statements of people in `new`, most certain kept where there are more than `limit`.
        What is known already is left to the gate, which says of which memory it is a repeat."""
        found = _of_talk([m for m in new if m.role == "user"])
        unique, collapsed = collapse(found)
        kept = [p for p in unique if not p.flags]
        skipped = []
        while len(kept) > limit:
            # Of two equals the later goes: what is said first is usually what matters.
            out = kept.pop(min(range(len(kept)), key=lambda i: (kept[i].draft.confidence, -i)))
            skipped.append(Skipped("over_limit", f"At most {limit} are kept.", out.draft.content))
        lost = missed(new, unique)
        count = f"{len(unique) + collapsed} clauses matched a rule."
        nothing = "No clause matched a rule."
        if not unique and lost:
            nothing += " Yet somebody asked to remember something."
        return Extraction(
            Outcome.OK if unique else Outcome.NOTHING,
            count if unique else nothing,
            tuple(kept),
            tuple(p for p in unique if p.flags),
            tuple(skipped),
            collapsed,
            missed=lost,
            read_by="rules",
        )


def _tidied(sentence: str) -> str:
    """`sentence` without lead-ins and laughter, its contractions with their apostrophe."""
    sentence = _VOCATIVE.sub("", _LAUGH.sub("", _LEAD.sub("", sentence.strip())))
    return _CONTRACTED.sub(lambda m: f"{m[1] or m[3]}'{m[2] or m[4]}", sentence).strip()


def _of_talk(messages: Sequence[Message]) -> list[Proposal]:
    """What `messages` of people state, in their order, without what they took back."""
    found: list[Proposal] = []
    for message in messages:
        said, _ = split_injected(message.content)
        for sentence in sentences(_LOG.sub("", _CODE.sub("\n", said))):
            sentence = _tidied(sentence)
            if back := RETRACTED.match(sentence):
                gone = _taken_back(found, sentence)
                found = [p for p in found if p not in gone]
                sentence = "" if back["all"] else sentence[back.end() :].lstrip("，,.。 ")
                found += [p for p in _of(message, sentence) if not _shared(p, gone)]
            elif joined := _continued(found, message, sentence):
                found[found.index(joined[0])] = joined[1]
            else:
                found += _of(message, sentence)
    return found


def _of(message: Message, sentence: str) -> Iterator[Proposal]:
    if asked := REMEMBER.match(sentence):
        yield from _asked(message, (asked["zh"] or asked["en"]).strip(), sentence)
    elif after := REMEMBER_AFTER.search(sentence):
        yield from _asked(message, sentence[: after.start()], sentence)
    elif not any(p.search(sentence) for p in (QUESTION, TASK, SPEECH, plain.UNDECIDED)) and (
        plain.authority(sentence) or not REPORTED.search(sentence)
    ):
        yield from _of_sentence(message, sentence)


def _taken_back(found: Sequence[Proposal], sentence: str) -> list[Proposal]:
    """What of the latest statements `sentence` takes back: those with a word in common, else the
    last one."""
    words = set(index_terms(sentence))
    near = [p for p in found[-4:] if words & set(index_terms(p.draft.content))]
    return near or list(found[-1:])


def _shared(proposal: Proposal, gone: Sequence[Proposal]) -> bool:
    words = set(index_terms(proposal.draft.content)) - {"user", "用户"}
    return any(words & set(index_terms(g.draft.content)) - {"user", "用户"} for g in gone)


def _continued(
    found: Sequence[Proposal], message: Message, sentence: str
) -> tuple[Proposal, Proposal] | None:
    """The statement that `sentence` goes on about, and both as one: "她三岁" alone would be about
    nobody."""
    clause = sentence.rstrip("。.!！~～ ")
    if not plain.PRONOUN.match(sentence) or plain.passing(clause, pronoun=True):
        return None
    if any(p.search(sentence) for p in (QUESTION, SUPPOSED, REPORTED)):
        return None
    last = next(
        (
            p
            for p in reversed(found[-3:])
            if mentions_somebody(p.draft.content) or plain.NAMES.search(p.draft.content[1:])
        ),
        None,
    )
    if last is None or last.evidence is None:
        return None
    told = third_person(clause, message.name)
    comma = "，" if re.search("[\u3400-\u9fff]", told) else "; "
    content = f"{last.draft.content}{comma}{told}"
    if len(content) > LONGEST // 2:
        return None
    quote = shorten(f"{last.evidence.quote} {sentence}", 300)
    return last, replace(
        last,
        draft=replace(last.draft, content=content),
        evidence=replace(last.evidence, quote=quote),
    )


def _asked(message: Message, rest: str, sentence: str) -> Iterator[Proposal]:
    """What somebody asked to remember is kept as a whole, typed by the rule it matches."""
    rest = rest.rstrip("。.!！ ")
    if len(rest) < SHORTEST or QUESTION.search(sentence):
        return
    rule = next((r for r in RULES if r.pattern.search(rest)), None)
    language = "zh" if re.search("[\u3400-\u9fff]", rest) else "en"
    named = f"{language}.remember" + (f" + {rule.name}" if rule else "")
    found = Rule(named, REMEMBER, rule.memory_type if rule else MemoryType.FACT, 0.95,
                 rule.scope if rule else Scope.USER, rule.says if rule else "")  # fmt: skip
    yield _proposal(message, rest, found, rest)


def _of_sentence(message: Message, sentence: str) -> Iterator[Proposal]:
    chinese = bool(re.search("[\u3400-\u9fff]", sentence))
    clauses = [
        c.strip() for c in (_CLAUSES if chinese else _CLAUSES_EN).split(sentence) if c.strip()
    ]
    about_speaker = False
    taken: list[tuple[str, Rule]] = []
    rest: list[str] = []
    for clause in clauses:
        clause = _LEAD.sub("", clause).rstrip("。.!！~～ ")
        if chinese and clause.startswith("我") and not clause.startswith("我们"):
            about_speaker = True
        elif chinese and has_subject(clause):
            about_speaker = False
        if not SHORTEST <= len(clause) <= LONGEST or any(
            p.search(clause) for p in (SUPPOSED, QUESTION, plain.PLEASANTRY)
        ):
            continue
        rule = next((r for r in RULES if r.pattern.search(clause)), None)
        of_another = bool(taken) and taken[-1][1].name == "zh.family"
        if rule is None and about_speaker and not of_another and not has_subject(clause):
            # "我是护士，夜班多，不喝咖啡": the subject carries over.
            rule = next((r for r in RULES if r.pattern.search(f"我{clause}")), None)
            clause = f"我{clause}" if rule else clause
        if rule is None:
            if plain.passing(clause):
                continue
            if taken and not leading_subject(clause) and chinese and len(clause) <= 20:
                # A short tail belongs to what was just said.
                before, which = taken[-1]
                taken[-1] = (f"{before}，{clause}", which)
            else:
                rest.append(clause)
            continue
        if taken and taken[-1][1].name == rule.name and _ANNOUNCED.search(taken[-1][0]):
            # "会上定了，数据库换成 TiDB": what was decided comes after.
            taken[-1] = (f"{taken[-1][0]}，{clause}", rule)
            continue
        taken.append((clause, rule))
    whole = ("，" if chinese else ", ").join(rest)[:LONGEST]
    if whole and not SUPPOSED.search(sentence) and (rule := plain.kind(whole, chinese=chinese)):
        taken.insert(0, (with_subject(whole), rule))
    for clause, rule in taken:
        yield _proposal(message, clause, rule, sentence)


def _names(clause: str) -> tuple[str, ...]:
    """Product and other names in a clause: three at most, no days and months."""
    found = (n.strip(".") for n in _NAMES.findall(clause[1:]))
    return tuple(dict.fromkeys(n for n in found if n[:3].lower() not in _CALENDAR))[:3]


def _proposal(message: Message, clause: str, rule: Rule, sentence: str) -> Proposal:
    content = third_person(clause, message.name)
    who = message.name or ("用户" if rule.name.startswith("zh") else "User")
    told = re.match(r"我|咱|i\b|we\b", clause, re.IGNORECASE) or TEAM.search(clause[:8])
    if (
        rule.name.startswith("zh")
        and "希望" in rule.says
        and not told
        and re.search("^你|我", clause)
    ):
        # "别叫我哥" is about the speaker, but told of the agent.
        content = rule.says.format(who=who) + re.sub("我", "自己", re.sub("^你们?", "助手", clause))
    elif rule.says and not told and who not in content[:20]:
        said = rule.says.format(who=who)
        content = said + (
            content if rule.name.startswith("zh") else content[:1].lower() + content[1:]
        )
    scope = rule.scope
    if THIS_TIME.search(clause):
        scope = Scope.SESSION
    elif (
        scope is Scope.PROJECT
        and re.search(r"我(?!们)|\b(?:i|me|my)\b", clause, re.IGNORECASE)
        and not TEAM.search(clause)
    ):
        scope = Scope.USER
    hedged = bool(HEDGE.search(sentence))
    confidence = round(rule.confidence - HEDGED * hedged, 2)
    draft = Draft(
        content=content,
        memory_type=rule.memory_type,
        scope=scope,
        confidence=confidence,
        title=shorten(content, 40),
        tags=_names(clause),
        source="extraction",
        source_message_id=message.id,
    )
    notes = ("said with doubt",) if hedged else ()
    evidence = Evidence(message.id, message.role, shorten(sentence, 300), rule.name)
    return replace(Proposal(draft, evidence, notes=notes), flags=tuple(doubts(content)))
