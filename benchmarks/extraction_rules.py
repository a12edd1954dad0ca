"""How much of what people say the offline extractor finds, on our own labelled conversations.

    python benchmarks/extraction_rules.py

`dev.jsonl` was looked at while the rules were written; `test.jsonl` was written before they were
last changed, and what they miss there was not looked at. A label names strings
that a statement must contain and, where it matters, its type. Recall: labels found. Precision:
proposals that some label asks for. Prints one line per set and language.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

from memcore.extraction.conversation import read_messages
from memcore.extraction.rules import RulesExtractor

HERE = Path(__file__).parent / "extraction"


def measure(path: Path, *, verbose: bool = False) -> dict[str, dict[str, float]]:
    """language (or `all`) → recall, typed (share of found labels of the right type), precision,
    labels, proposals."""
    counts: dict[str, Counter[str]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        read = RulesExtractor().extract(read_messages(case["messages"]), limit=100)
        proposals = [p.draft for p in (*read.proposals, *read.held)]
        here: Counter[str] = Counter(proposals=len(proposals), labels=len(case["expected"]))
        used = set()
        for label in case["expected"]:
            hits = [i for i, d in enumerate(proposals) if _fits(label, d.content)]
            used |= set(hits)
            here["found"] += bool(hits)
            kinds = {str(proposals[i].memory_type) for i in hits}
            here["typed"] += bool(hits) and label.get("type", next(iter(kinds), "")) in kinds
            if verbose and not hits:
                print("missed", label)
        here["right"] = len(used)
        if verbose:
            for i, d in enumerate(proposals):
                if i not in used:
                    print("unasked", d.memory_type, d.content)
        for key in (case["language"], "all"):
            counts.setdefault(key, Counter()).update(here)
    return {
        key: {
            "recall": c["found"] / c["labels"],
            "typed": c["typed"] / max(1, c["found"]),
            "precision": c["right"] / max(1, c["proposals"]),
            "labels": c["labels"],
            "proposals": c["proposals"],
        }
        for key, c in counts.items()
    }


def _fits(label: dict[str, Any], content: str) -> bool:
    return all(word in content for word in label["has"])


def main() -> None:
    import sys

    for name in ("dev", "test"):
        started = time.perf_counter()
        found = measure(HERE / f"{name}.jsonl", verbose="-v" in sys.argv)
        spent = (time.perf_counter() - started) * 1e3
        for language, row in found.items():
            print(
                f"{name:5}{language:4} recall {row['recall']:.2f}  precision {row['precision']:.2f}"
                f"  type right {row['typed']:.2f}  ({row['labels']:.0f} labels,"
                f" {row['proposals']:.0f} proposals)"
            )
        print(f"{name:5}     {spent:.0f} ms for all")


if __name__ == "__main__":
    main()
