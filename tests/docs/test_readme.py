"""The README says what is so: its example runs, its tables are those of the code."""

from __future__ import annotations

import argparse
import contextlib
import io
import re
from pathlib import Path

import pytest

from memcore.cli import _parser
from memcore.settings import SPECS, SettingSpec

README = Path(__file__).parents[2] / "README.md"


def block(name: str) -> str:
    found = re.search(rf"<!-- {name} -->\n(.*?)<!-- /{name} -->", README.read_text(), re.S)
    assert found, name
    return found[1].strip()


def settings_table() -> str:
    def default(spec: SettingSpec) -> str:
        value = spec.default
        if value is None or value == "":
            return "–"
        return (
            {True: "on", False: "off"}.get(value, str(value)) if spec.type is bool else str(value)
        )

    def range_of(spec: SettingSpec) -> str:
        if spec.choices:
            return ", ".join(spec.choices)
        if spec.low is None:
            return ""
        return f"{spec.low:g} – {spec.high:,g}" + (f" {spec.unit}" if spec.unit else "")

    lines = ["| setting | default | range | what it does |", "|---|---|---|---|"]
    for spec in SPECS.values():
        name = f"`{spec.name}`" + (f"<br>`{spec.env}`" if spec.env else "")
        lines.append(f"| {name} | {default(spec)} | {range_of(spec)} | {spec.help} |")
    return "\n".join(lines)


def commands_table() -> str:
    (commands,) = (a for a in _parser()._actions if isinstance(a, argparse._SubParsersAction))
    lines = ["| command | |", "|---|---|"]
    lines += [f"| `memcore {c.dest}` | {c.help} |" for c in commands._choices_actions]
    return "\n".join(lines)


@pytest.mark.parametrize("name", ["settings", "commands"])
def test_a_table_of_the_readme_is_the_codes_own(name: str) -> None:
    table = {"settings": settings_table, "commands": commands_table}[name]()
    assert block(name) == table, "renew it with: python -m tests.docs.test_readme"


def test_the_example_of_the_readme_runs_and_recalls_what_it_stored(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.setenv("MEMCORE_HOME", str(tmp_path))
    (example,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.S)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(example, str(README), "exec"), {})
    assert said.getvalue().count("Mira wants summaries as short bullet points.") == 2
    assert "similarity" in said.getvalue()


def test_every_picture_and_file_the_readme_names_is_there() -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", README.read_text()):
        assert (README.parent / target).exists(), target


def renew() -> None:
    text = README.read_text()
    for name, table in (("settings", settings_table()), ("commands", commands_table())):
        text = re.sub(
            rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)",
            lambda m, table=table: f"{m[1]}{table}\n{m[2]}",
            text,
            flags=re.S,
        )
    README.write_text(text)


if __name__ == "__main__":
    renew()
