"""From conversation to memory: when, from what, judged how, logged how."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import text

from memcore.core import Core
from memcore.errors import EndpointTimeout, NotFound
from memcore.extraction import Extraction, Known
from memcore.extraction.reply import read_reply
from memcore.extraction.rules import RulesExtractor
from memcore.extraction.runs import Run, compare
from memcore.models import Actor, Library, Message, Status, Subject
from memcore.rules.tokens import estimate_tokens

ME = Actor("u1")


class Scripted:
    """An extractor that answers what it is told, and keeps what it was shown."""

    name = "llm:scripted"

    def __init__(self, *replies: Any) -> None:
        self.replies = list(replies)
        self.seen: list[list[str]] = []
        self.context: list[list[str]] = []
        self.known: list[tuple[Known, ...]] = []

    def extract(
        self,
        new: Sequence[Message],
        *,
        context: Sequence[Message] = (),
        known: Sequence[Known] = (),
        limit: int = 5,
    ) -> Extraction:
        self.seen.append([m.content for m in new])
        self.context.append([m.content for m in context])
        self.known.append(tuple(known))
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if isinstance(reply, Exception):
            raise reply
        if not isinstance(reply, str):
            reply = json.dumps({"memories": reply}, ensure_ascii=False)
        return read_reply(reply, conversation=[*context, *new], known=known, limit=limit)


def item(content: str, **fields: Any) -> dict[str, Any]:
    return {"content": content, "type": "fact", "confidence": 0.9, **fields}


def say(core: Core, who: Subject, *texts: str) -> None:
    core.conversations.start(who)
    turns = [
        {"role": role, "content": content}
        for t in texts
        for role, content in (("user", t), ("assistant", "好的"))
    ]
    core.conversations.append(str(who.session_id), turns, actor=ME)


def run_of(run: Run | None) -> Run:
    assert run is not None
    return run


def active(core: Core, library: Library) -> list[str]:
    page = core.memories.browse(actor=Actor("op", operator=True), limit=100)
    return sorted(m.content for m in page.memories if m.status is Status.ACTIVE)


def test_extraction_waits_for_the_interval_and_reads_only_new_turns(
    core: Core, who: Subject, library: Library
) -> None:
    core.libraries.set(library.id, {"extraction_interval": 2})
    extractor = Scripted([])
    say(core, who, "一")
    assert core.conversations.extract("s1", actor=ME, extractor=extractor) is None
    say(core, who, "二")
    assert core.conversations.extract("s1", actor=ME, extractor=extractor)
    assert core.conversations.extract("s1", actor=ME, extractor=extractor) is None
    say(core, who, "三", "四")
    assert core.conversations.extract("s1", actor=ME, extractor=extractor)
    assert extractor.seen == [["一", "好的", "二", "好的"], ["三", "好的", "四", "好的"]]
    assert extractor.context == [[], ["一", "好的", "二", "好的"]]


def test_accepted_proposals_become_memories_with_their_source(
    core: Core, who: Subject, library: Library
) -> None:
    say(core, who, "我在港口开吊车", "我不吃猪肉")
    extractor = Scripted([item("用户在港口开吊车"), item("用户不吃猪肉", type="constraint")])
    run = run_of(core.conversations.extract("s1", actor=ME, extractor=extractor, now=True))
    assert active(core, library) == ["用户不吃猪肉", "用户在港口开吊车"]
    assert [j.status for j in run.items] == ["added", "added"]
    first = core.conversations.messages("s1", actor=ME)[0]
    memory = core.memories.get(str(run.items[0].memory_id), actor=ME)
    assert (memory.source, memory.source_message_id) == ("extraction", first.id)
    assert memory.conversation_id == "s1"
    assert run.counts["added"] == 2
    assert run.ms > 0
    assert run.items[0].verdict is not None
    assert len(run.items[0].verdict.checks) == 5


def test_the_gate_judges_every_proposal_and_flagged_ones_are_held(
    core: Core, who: Subject, library: Library
) -> None:
    say(core, who, "我在港口开吊车，密码是 Xk3!t8pQz92，可能要换班")
    extractor = Scripted(
        [
            item("用户在港口开吊车"),
            item("密码是 Xk3!t8pQz92"),
            item("用户可能要换班", confidence=0.4),
            item("用户养了三只鹦鹉"),
        ]
    )
    run = run_of(core.conversations.extract("s1", actor=ME, extractor=extractor, now=True))
    by_status = {j.status: j for j in run.items if j.status != "rejected"}
    rejected = [j.verdict.blocked_by for j in run.items if j.status == "rejected" and j.verdict]
    assert rejected == ["sensitive", "confidence"]
    assert by_status["held"].proposal.flags[0].kind == "ungrounded"
    assert active(core, library) == ["用户在港口开吊车"]
    stored = core.conversations.run(run.id, actor=ME)
    assert "Xk3!t8pQz92" not in repr(stored)
    assert stored.items == run.items


def test_one_message_never_yields_the_same_memory_twice(
    core: Core, who: Subject, library: Library
) -> None:
    say(core, who, "我在港口开吊车")
    extractor = Scripted([item("用户在港口开吊车")])
    first = run_of(core.conversations.extract("s1", actor=ME, extractor=extractor, now=True))
    memory_id = str(first.items[0].memory_id)
    core.memories.change_status(memory_id, Status.SUPPRESSED, actor=ME)
    again = run_of(core.conversations.extract("s1", actor=ME, extractor=extractor, again=True))
    assert [j.status for j in again.items] == ["repeat"]
    core.memories.delete(memory_id, actor=ME)
    after = run_of(core.conversations.extract("s1", actor=ME, extractor=extractor, again=True))
    assert [j.status for j in after.items] == ["repeat"]
    assert active(core, library) == []


def test_a_dry_run_stores_nothing_and_moves_nothing_on(
    core: Core, who: Subject, library: Library
) -> None:
    say(core, who, "我在港口开吊车")
    extractor = Scripted([item("用户在港口开吊车")])
    run = run_of(core.conversations.extract("s1", actor=ME, extractor=extractor, dry_run=True))
    assert (run.dry_run, [j.status for j in run.items]) == (True, ["proposed"])
    assert active(core, library) == []
    assert core.memories.check_rate_limit(subject=who).used == 0
    assert core.conversations.due("s1", actor=ME).turns == 1


def test_ticked_proposals_are_stored_even_held_ones_but_never_a_secret(
    core: Core, who: Subject, library: Library
) -> None:
    say(core, who, "我在港口开吊车，口令是 Xk3!t8pQz92")
    extractor = Scripted(
        [item("用户在港口开吊车"), item("用户养了三只鹦鹉"), item("口令密码是 Xk3!t8pQz92")]
    )
    run = run_of(core.conversations.extract("s1", actor=ME, extractor=extractor, dry_run=True))
    assert [j.status for j in run.items] == ["proposed", "rejected", "held"]
    accepted = core.conversations.accept(run.id, [0, 1, 2], actor=ME)
    assert [j.status for j in accepted.items] == ["added", "rejected", "added"]
    assert accepted.counts["added"] == 2
    assert core.conversations.run(run.id, actor=ME).items == accepted.items
    assert active(core, library) == ["用户养了三只鹦鹉", "用户在港口开吊车"]
    once = core.conversations.accept(run.id, [0], actor=ME)
    assert once.items[0].status == "added"
    assert len(active(core, library)) == 2


def test_an_update_supersedes_the_memory_it_names_and_no_other(
    core: Core, who: Subject, library: Library
) -> None:
    old = core.memories.add_explicit_memory("用户在销售部上班", subject=who).memory
    assert old is not None
    say(core, who, "我调到了仓储那边")
    extractor = Scripted([item("用户调到了仓储", action="update", id=old.id)])
    run = run_of(core.conversations.extract("s1", actor=ME, extractor=extractor, now=True))
    assert Known(old.id, "用户在销售部上班") in extractor.known[0]
    assert [j.status for j in run.items] == ["updated"]
    assert core.memories.get(old.id, actor=ME).status is Status.SUPERSEDED
    assert active(core, library) == ["用户调到了仓储"]


def test_a_deletion_waits_for_a_person(core: Core, who: Subject, library: Library) -> None:
    old = core.memories.add_explicit_memory("用户在销售部上班", subject=who).memory
    assert old is not None
    say(core, who, "别再记我的部门了")
    extractor = Scripted([{"action": "delete", "id": old.id}])
    run = run_of(core.conversations.extract("s1", actor=ME, extractor=extractor, now=True))
    assert [j.status for j in run.items] == ["held"]
    assert active(core, library) == ["用户在销售部上班"]
    assert core.conversations.accept(run.id, [0], actor=ME).counts["deleted"] == 1
    assert active(core, library) == []


def test_only_runs_that_stored_something_use_up_the_rate(
    core: Core, who: Subject, library: Library
) -> None:
    core.libraries.set(library.id, {"max_extractions": 2, "extraction_interval": 1})
    turns = ["我在港口开吊车", "嗯", "我养了一只鹤", "我会手语"]
    contents = ["用户在港口开吊车", "", "用户养了一只鹤", "用户会手语"]
    outcomes = []
    for turn, content in zip(turns, contents, strict=True):
        say(core, who, turn)
        extractor = Scripted([item(content)] if content else [])
        run = run_of(core.conversations.extract("s1", actor=ME, extractor=extractor))
        outcomes.append((run.outcome, core.memories.check_rate_limit(subject=who).used))
    assert outcomes == [("ok", 1), ("nothing", 1), ("ok", 2), ("rate_limited", 2)]
    assert "2 of 2" in core.conversations.runs(actor=ME)[0].detail
    assert active(core, library) == ["用户养了一只鹤", "用户在港口开吊车"]


def test_runs_at_the_same_time_read_the_turns_once(
    core: Core, who: Subject, library: Library
) -> None:
    say(core, who, "我在港口开吊车")
    extractor = Scripted([item("用户在港口开吊车")])
    with ThreadPoolExecutor(6) as pool:
        runs = list(
            pool.map(
                lambda _: core.conversations.extract("s1", actor=ME, extractor=extractor, now=True),
                range(6),
            )
        )
    added = [r for r in runs if r is not None and r.counts.get("added")]
    assert len(added) == 1
    assert active(core, library) == ["用户在港口开吊车"]


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        ("not json", "unparsable"),
        ("", "unparsable"),
        ("抱歉，我无法处理", "refused"),
        (EndpointTimeout("http://x did not answer within 10 s."), "failed"),
    ],
)
def test_a_failed_run_is_logged_costs_nothing_and_is_tried_again_later(
    core: Core, who: Subject, library: Library, reply: Any, outcome: str
) -> None:
    core.libraries.set(library.id, {"extraction_interval": 1})
    extractor = Scripted(reply, [item("用户在港口开吊车")])
    say(core, who, "我在港口开吊车")
    failed = run_of(core.conversations.extract("s1", actor=ME, extractor=extractor))
    assert (failed.outcome, failed.failed, failed.counted) == (outcome, True, False)
    assert failed.detail
    assert core.conversations.extract("s1", actor=ME, extractor=extractor) is None
    say(core, who, "今天多云")
    good = run_of(core.conversations.extract("s1", actor=ME, extractor=extractor))
    assert good.counts["added"] == 1
    assert extractor.seen[1][0] == "我在港口开吊车"
    assert [r.outcome for r in core.conversations.runs(actor=ME)] == ["ok", outcome]


def test_a_run_is_repeated_with_another_extractor_and_compared(core: Core, who: Subject) -> None:
    say(core, who, "我在港口开吊车，周末学剪纸")
    first = run_of(
        core.conversations.extract(
            "s1", actor=ME, now=True, extractor=Scripted([item("用户在港口开吊车")])
        )
    )
    other = Scripted([item("用户在港口开吊车呢"), item("用户周末学剪纸", type="habit")])
    second = core.conversations.repeat(first.id, actor=ME, extractor=other)
    assert (second.repeats, second.dry_run, second.messages) == (first.id, True, first.messages)
    pairs = compare(first, second)
    assert [(p.left is None, p.right is None) for p in pairs] == [(False, False), (True, False)]
    assert pairs[0].agreement > 0.5


def test_a_pasted_conversation_is_read_without_being_stored(
    core: Core, who: Subject, library: Library
) -> None:
    talk = [Message("m1", "user", "我在港口上班")]
    dry = core.conversations.extract_from(talk, subject=who, actor=ME)
    assert [(j.status, j.proposal.draft.content) for j in dry.items] == [
        ("proposed", "用户在港口上班")
    ]
    core.conversations.accept(dry.id, [0], actor=ME)
    again = core.conversations.extract_from(talk, subject=who, actor=ME)
    assert [j.status for j in again.items] == ["repeat"]
    other = core.conversations.extract_from(
        [Message("m1", "user", "我会拉二胡")], subject=who, actor=ME
    )
    assert [j.status for j in other.items] == ["proposed"]
    assert core.conversations.conversations(actor=ME) == []


def test_a_scope_that_is_not_there_becomes_the_users(core: Core, who: Subject) -> None:
    alone = replace(who, project_id=None, session_id=None)
    run = core.conversations.extract_from(
        [Message("m", "user", "我们团队决定用 Elixir")], subject=alone, actor=ME
    )
    (judged,) = run.items
    assert judged.proposal.draft.scope == "user"
    assert "no project here: kept with the user" in judged.proposal.notes


def test_runs_are_their_users_alone(core: Core, who: Subject) -> None:
    run = core.conversations.extract_from([Message("m", "user", "嗯")], subject=who, actor=ME)
    with pytest.raises(NotFound):
        core.conversations.run(run.id, actor=Actor("u2"))
    assert core.conversations.runs(actor=Actor("u2")) == []
    assert len(core.conversations.runs(actor=Actor("op", operator=True))) == 1


def test_a_run_that_died_does_not_hold_the_session_for_ever(core: Core, who: Subject) -> None:
    say(core, who, "我在港口开吊车")

    class Dies(Scripted):
        def extract(self, *args: Any, **options: Any) -> Extraction:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        core.conversations.extract("s1", actor=ME, extractor=Dies([]), now=True)
    assert core.conversations.runs(actor=ME)[0].detail == "The run was broken off."
    with core.runtime.engine.begin() as connection:
        connection.execute(
            text("UPDATE extraction_runs SET outcome = 'running', counted = true, "
                 "at = now() - interval '16 minutes'")
        )  # fmt: skip
    extractor = Scripted([item("用户在港口开吊车")])
    assert core.conversations.extract("s1", actor=ME, extractor=extractor, now=True)


def test_the_offline_extractor_serves_a_library_without_a_model(
    core: Core, who: Subject, library: Library
) -> None:
    say(core, who, "记住：我对乳胶过敏", "以后汇报用表格")
    run = run_of(core.conversations.extract("s1", actor=ME, now=True))
    assert (run.extractor, run.outcome) == ("rules", "ok")
    assert active(core, library) == ["用户对乳胶过敏", "用户希望以后汇报用表格"]
    assert estimate_tokens(run.detail) > 0


def test_switched_off_extraction_runs_only_when_asked(core: Core, who: Subject) -> None:
    agent = core.libraries.create_agent(
        "quiet", library_id=who.library_id, extraction_enabled=False
    )
    there = replace(who, agent_id=agent.id)
    say(core, there, "一", "二", "三", "记住：我对乳胶过敏")
    assert core.conversations.extract("s1", actor=ME) is None
    assert core.conversations.extract("s1", actor=ME, now=True) is not None


def test_no_piece_of_a_secret_is_kept_with_a_run(core: Core, who: Subject) -> None:
    secret = "Bk7-Torx-Q2v"
    talk = [
        {"role": "user", "content": f"记住：访客网密码是 {secret}"},
        *({"role": "user", "content": f"记住：第 {n} 号柜在 {n + 3} 楼"} for n in range(2, 9)),
        {"role": "user", "content": f"另外测试库密码是 {secret}，记一下"},
    ]
    proposed = json.dumps(
        {"memories": [item(f"访客网密码是 {secret}", tags=["网络", secret])]},
        ensure_ascii=False,
    )
    for extractor in (RulesExtractor(), Scripted(proposed)):
        run = core.conversations.extract_from(talk, subject=who, actor=ME, extractor=extractor)
        kept = json.dumps(
            [repr(run), repr(core.conversations.run(run.id, actor=ME))], ensure_ascii=False
        )
        assert secret not in kept
        assert "Torx" not in kept


def test_a_masked_memory_has_no_tag_of_its_secret(core: Core, who: Subject) -> None:
    operator = Actor("op", operator=True)
    core.libraries.set(who.library_id, {"sensitive_action": "redact"}, actor=operator)
    stored = core.memories.add_explicit_memory(
        "访客网密码是 Bk7-Torx-Q2v", subject=who, tags=("网络", "Bk7-Torx-Q2v", "torx")
    ).memory
    assert stored is not None
    assert stored.tags == ("网络",)
    assert "Torx" not in stored.content
