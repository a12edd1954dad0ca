"""`memcore extract`, `read-reply`, `context` and `mcp`, as programs use them."""

from __future__ import annotations

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import anyio
import pytest

from memcore.cli import main
from memcore.core import Core
from memcore.models import Library, Subject

TALK = [
    {"role": "user", "content": "记住：我对荞麦过敏。我下个月要去敦煌。"},
    {"role": "assistant", "content": "好的。"},
]


@pytest.fixture
def talk(tmp_path: Path) -> Path:
    path = tmp_path / "talk.jsonl"
    path.write_text("\n".join(json.dumps(m, ensure_ascii=False) for m in TALK), "utf-8")
    return path


@pytest.fixture
def connected(core: Core, database_url: str, monkeypatch: pytest.MonkeyPatch) -> Core:
    monkeypatch.setenv("DATABASE_URL", database_url)
    return core


def answer(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def test_extract_needs_no_database(talk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["extract", str(talk), "--json"]) == 0
    found = answer(capsys)
    assert found["outcome"] == "ok"
    assert [(p["content"], p["type"]) for p in found["proposals"]] == [
        ("用户对荞麦过敏", "constraint"),
        ("用户下个月要去敦煌", "event"),
    ]
    assert found["proposals"][0]["evidence"]["rule"] == "zh.remember + zh.allergy"
    assert found["counts"]["kept"] == 2


def test_extract_says_what_the_gate_would_and_stores_on_request(
    connected: Core,
    who: Subject,
    library: Library,
    talk: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    there = ["--library", "team", "--user", "u1", "--json"]
    assert main(["extract", str(talk), *there]) == 0
    found = answer(capsys)
    assert [p["status"] for p in found["proposals"]] == ["proposed", "proposed"]
    assert len(found["proposals"][0]["verdict"]["checks"]) == 5
    assert main(["extract", str(talk), *there, "--store"]) == 0
    assert [p["status"] for p in answer(capsys)["proposals"]] == ["added", "added"]
    assert main(["extract", str(talk), *there, "--store"]) == 0
    assert [p["status"] for p in answer(capsys)["proposals"]] == ["repeat", "repeat"]


@pytest.mark.parametrize(
    "text",
    [
        '{"messages": [{"role": "user", "content": "我对荞麦过敏"}]}',
        '[{"from": "human", "value": "我对荞麦过敏"}]',
        "用户：我对荞麦过敏\n助手：好的",
        '{"conversations": [{"from": "human", "value": "我对荞麦过敏"}]}',
        '{"sample_id": "x", "conversation": {"session_1_date_time": "1:00 pm on 8 May, 2023", '
        '"session_1": [{"speaker": "Lin", "dia_id": "D1:1", "text": "我对荞麦过敏"}]}}',
        '{"lin": {"history": {"2023-05-01": [{"query": "我对荞麦过敏", "response": "好"}]}}}',
    ],
)
def test_extract_reads_every_form_of_conversation(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "talk"
    path.write_text(text, "utf-8")
    assert main(["extract", str(path), "--json"]) == 0
    (proposal,) = answer(capsys)["proposals"]
    assert proposal["content"].endswith("对荞麦过敏")


def test_several_conversations_give_one_document(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "talks.json"
    one = {"messages": [{"role": "user", "content": "我对荞麦过敏"}]}
    path.write_text(json.dumps([one, one]), "utf-8")
    assert main(["extract", str(path), "--json"]) == 0
    assert [c["counts"]["kept"] for c in answer(capsys)["conversations"]] == [1, 1]


@pytest.mark.parametrize("text", ["", "just words", "{}", "[1, 2]", '{"role": "user"}\n{broken'])
def test_what_is_no_conversation_is_refused_with_a_hint(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "talk"
    path.write_text(text, "utf-8")
    assert main(["extract", str(path)]) == 1
    assert "memcore: " in capsys.readouterr().err


def test_read_reply_gives_a_line_for_each_line_and_fails_with_the_worst(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "replies.jsonl"
    rows = [
        {"id": "a", "reply": '```json\n[{"content":"会打太极","type":"技能"}]\n```'},
        {"id": "b", "reply": None, "message": {"content": None}, "finish_reason": "length"},
    ]
    path.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    assert main(["read-reply", str(path), "--json"]) == 1
    good, bad = map(json.loads, capsys.readouterr().out.splitlines())
    assert (good["id"], good["proposals"][0]["type"], good["failed"]) == ("a", "skill", False)
    assert (bad["id"], bad["outcome"], bad["truncated"]) == ("b", "truncated", True)


def test_context_shows_the_prompt_and_counts_nothing(
    connected: Core, who: Subject, capsys: pytest.CaptureFixture[str]
) -> None:
    stored = connected.memories.add_explicit_memory("用户坐靠窗的位子", subject=who).memory
    assert stored is not None
    assert main(["context", "靠窗的位子", "--library", "team", "--user", "u1", "--json"]) == 0
    seen = answer(capsys)
    assert seen["included"] == [stored.id]
    assert "用户坐靠窗的位子" in seen["messages"][0]["content"]
    assert seen["tokens"] > 0


def test_people_get_a_table(talk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["extract", str(talk)]) == 0
    out = capsys.readouterr().out
    assert "用户对荞麦过敏" in out
    assert "constraint" in out


def test_the_mcp_server_serves_both_tools_to_the_official_client(
    core: Core, library: Library, database_url: str, tmp_path: Path
) -> None:
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "memcore", "mcp", "--library", "team", "--user", "u1"],
        env={"DATABASE_URL": database_url, "MEMCORE_HOME": str(tmp_path),
             "PATH": os.environ["PATH"]},
    )  # fmt: skip

    async def talk() -> tuple[list[str], dict[str, Any], dict[str, Any]]:
        async with Client(stdio_client(server)) as client:
            tools = await client.list_tools()
            added = await client.call_tool(
                "memory_add", {"content": "用户只坐靠窗的位子", "memory_type": "preference"}
            )
            found = await client.call_tool("memory_search", {"query": "靠窗", "k": 3})
            return (
                sorted(t.name for t in tools.tools),
                json.loads(added.content[0].text),  # type: ignore[union-attr]
                json.loads(found.content[0].text),  # type: ignore[union-attr]
            )

    # In a thread of its own: a browser test on the same worker may have left a loop running here.
    with ThreadPoolExecutor(1) as pool:
        names, added, found = pool.submit(anyio.run, talk).result(timeout=120)
    assert names == ["memory_add", "memory_search"]
    assert added["stored"]
    assert [m["text"] for m in found["memories"]] == ["用户只坐靠窗的位子"]
